#!/usr/bin/env bash
# PPO on one machine: a critic's server, a reward server, and the actor that asks both and trains the critic.
#
#   KEDGE_RUN=runs/aligned KEDGE_POLICY=runs/sft/model KEDGE_REWARD_MODEL=runs/judge/model KEDGE_PROMPTS=prompts.jsonl \
#     launch/local/ppo_separate.sh [CONFIG.yaml] [key=value ...] [--critic [CONFIG.yaml] [key=value ...]] [--reward [CONFIG.yaml] [key=value ...]]
#
#   KEDGE_RUN            the folder of this run; what is there is gone on with
#   KEDGE_POLICY         the model to train
#   KEDGE_REWARD_MODEL   the model that rewards
#   KEDGE_CRITIC_MODEL   the model that the critic starts from, a reward or a language model; unless set, the one that rewards
#   KEDGE_PROMPTS        a JSONL file of prompts; KEDGE_VAL_PROMPTS: others for validation
# Arguments are kedge's own: first those of kedge ppo, behind --critic those of kedge serve critic, behind --reward those of kedge serve reward.
# launch/README.md has the rest.

# shellcheck source=launch/common.sh
. "$(dirname "$0")/../common.sh"
read_arguments "critic reward" "$@"
need KEDGE_RUN KEDGE_POLICY KEDGE_REWARD_MODEL
need_prompts
prepare_run
critic_port=$(free_port 127.0.0.1 0)
reward_port=$(free_port 127.0.0.1 1)
start_server critic 127.0.0.1 "$critic_port" \
  "$KEDGE" serve critic "${critic_arguments[@]}" pretrained_checkpoint.restore_from_path="${KEDGE_CRITIC_MODEL:-$KEDGE_REWARD_MODEL}" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/critic" \
    trainer.ppo.combine_rm_and_critic_server=false trainer.ppo.port="$critic_port" trainer.ppo.token_file="$token_file"
start_server reward 127.0.0.1 "$reward_port" \
  "$KEDGE" serve reward "${reward_arguments[@]}" rm_model_file="$KEDGE_REWARD_MODEL" inference.port="$reward_port" inference.token_file="$token_file"
run_actor "$KEDGE" ppo "${actor_arguments[@]}" pretrained_checkpoint.restore_from_path="$KEDGE_POLICY" "${prompts[@]}" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/actor" \
    remote_critic_rm.combine_rm_and_critic_server=false \
    remote_critic_rm.critic.ip=127.0.0.1 remote_critic_rm.critic.port="$critic_port" remote_critic_rm.token_file="$token_file" \
    reward.sources.remote_rm.kind=server reward.sources.remote_rm.url="http://127.0.0.1:$reward_port" reward.sources.remote_rm.token_file="$token_file"
exit "$status"
