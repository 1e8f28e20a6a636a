#!/usr/bin/env bash
# GRPO on one machine: a reward server, and the actor that calls it. Variables and arguments are those of reinforce.sh beside it.
KEDGE_ALGORITHM=grpo exec "$(dirname "$0")/reinforce.sh" "$@"
