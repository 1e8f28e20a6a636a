#!/usr/bin/env bash
# RLOO on one machine: a reward server, and the actor that calls it. Variables and arguments are those of reinforce.sh beside it.
KEDGE_ALGORITHM=rloo exec "$(dirname "$0")/reinforce.sh" "$@"
