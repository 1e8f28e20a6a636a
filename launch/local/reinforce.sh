#!/usr/bin/env bash
# REINFORCE on one machine: a reward server, and the actor that asks it.
#
#   KEDGE_RUN=runs/aligned KEDGE_POLICY=runs/sft/model KEDGE_REWARD_MODEL=runs/judge/model KEDGE_PROMPTS=prompts.jsonl \
#     launch/local/reinforce.sh [CONFIG.yaml] [key=value ...] [--reward [CONFIG.yaml] [key=value ...]]
#
#   KEDGE_RUN            the folder of this run; what is there is gone on with
#   KEDGE_POLICY         the model to train
#   KEDGE_REWARD_MODEL   the model that rewards
#   KEDGE_PROMPTS        a JSONL file of prompts; KEDGE_VAL_PROMPTS: others for validation
# Arguments are kedge's own: those before --reward of kedge reinforce, those behind it of kedge serve reward. launch/README.md has the rest.

# shellcheck source=launch/common.sh
. "$(dirname "$0")/../common.sh"
read_arguments reward "$@"
need KEDGE_RUN KEDGE_POLICY KEDGE_REWARD_MODEL
need_prompts
prepare_run
port=$(free_port 127.0.0.1 0)
start_server reward 127.0.0.1 "$port" \
  "$KEDGE" serve reward "${reward_arguments[@]}" rm_model_file="$KEDGE_REWARD_MODEL" inference.port="$port" inference.token_file="$token_file"
run_actor "$KEDGE" reinforce "${actor_arguments[@]}" pretrained_checkpoint.restore_from_path="$KEDGE_POLICY" "${prompts[@]}" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/actor" \
    reward.sources.remote_rm.kind=server reward.sources.remote_rm.url="http://127.0.0.1:$port" reward.sources.remote_rm.token_file="$token_file"
exit "$status"
