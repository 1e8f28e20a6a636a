#!/usr/bin/env bash
# PPO on one machine: a critic server, a reward server, and the actor that calls both and trains the critic.
#
#   KEDGE_RUN=runs/aligned KEDGE_POLICY=runs/sft/model KEDGE_REWARD_MODEL=runs/judge/model KEDGE_PROMPTS=prompts.jsonl \
#     launch/local/ppo_separate.sh [CONFIG.yaml] [key=value ...] [--critic [CONFIG.yaml] [key=value ...]] [--reward [CONFIG.yaml] [key=value ...]]
#
#   KEDGE_RUN            the folder of this run; an existing run is resumed
#   KEDGE_POLICY         the model to train
#   KEDGE_REWARD_MODEL   the reward model
#   KEDGE_CRITIC_MODEL   the critic's starting model, a reward or a language model; by default the reward model
#   KEDGE_PROMPTS        a JSONL file of prompts; KEDGE_VAL_PROMPTS: a separate file for validation
# Arguments go to kedge ppo; those after --critic go to kedge serve critic, those after --reward to kedge serve reward.
# See launch/README.md for more.

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
