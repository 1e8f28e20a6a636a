#!/usr/bin/env bash
# REINFORCE on one machine: a reward server, and the actor that calls it.
#
#   KEDGE_RUN=runs/aligned KEDGE_POLICY=runs/sft/model KEDGE_REWARD_MODEL=runs/judge/model KEDGE_PROMPTS=prompts.jsonl \
#     launch/local/reinforce.sh [CONFIG.yaml] [key=value ...] [--reward [CONFIG.yaml] [key=value ...]]
#
#   KEDGE_RUN            the folder of this run; an existing run is resumed
#   KEDGE_POLICY         the model to train
#   KEDGE_REWARD_MODEL   the reward model
#   KEDGE_ALGORITHM      grpo or rloo in place of reinforce, as launch/local/grpo.sh and rloo.sh set it
#   KEDGE_PROMPTS        a JSONL file of prompts; KEDGE_VAL_PROMPTS: a separate file for validation
# Arguments go to kedge reinforce; those after --reward go to kedge serve reward. See launch/README.md for more.

# shellcheck source=launch/common.sh
. "$(dirname "$0")/../common.sh"
read_arguments reward "$@"
need KEDGE_RUN KEDGE_POLICY KEDGE_REWARD_MODEL
need_prompts
prepare_run
port=$(free_port 127.0.0.1 0)
start_server reward 127.0.0.1 "$port" \
  "$KEDGE" serve reward "${reward_arguments[@]}" rm_model_file="$KEDGE_REWARD_MODEL" inference.port="$port" inference.token_file="$token_file"
run_actor "$KEDGE" "${KEDGE_ALGORITHM:-reinforce}" "${actor_arguments[@]}" pretrained_checkpoint.restore_from_path="$KEDGE_POLICY" "${prompts[@]}" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/actor" \
    '~remote_rm' reward.sources.remote_rm.kind=server reward.sources.remote_rm.url="http://127.0.0.1:$port" reward.sources.remote_rm.token_file="$token_file"
exit "$status"
