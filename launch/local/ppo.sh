#!/usr/bin/env bash
# PPO on one machine: a server with the critic and the reward model, and the actor that calls it and trains the critic.
#
#   KEDGE_RUN=runs/aligned KEDGE_POLICY=runs/sft/model KEDGE_REWARD_MODEL=runs/judge/model KEDGE_PROMPTS=prompts.jsonl \
#     launch/local/ppo.sh [CONFIG.yaml] [key=value ...] [--critic [CONFIG.yaml] [key=value ...]]
#
#   KEDGE_RUN            the folder of this run; an existing run is resumed
#   KEDGE_POLICY         the model to train
#   KEDGE_REWARD_MODEL   the reward model, which is also the critic's starting model
#   KEDGE_PROMPTS        a JSONL file of prompts; KEDGE_VAL_PROMPTS: a separate file for validation
# Arguments go to kedge ppo; those after --critic go to kedge serve critic. See launch/README.md for more.

# shellcheck source=launch/common.sh
. "$(dirname "$0")/../common.sh"
read_arguments critic "$@"
need KEDGE_RUN KEDGE_POLICY KEDGE_REWARD_MODEL
need_prompts
prepare_run
port=$(free_port 127.0.0.1 0)
start_server critic 127.0.0.1 "$port" \
  "$KEDGE" serve critic "${critic_arguments[@]}" pretrained_checkpoint.restore_from_path="$KEDGE_REWARD_MODEL" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/critic" \
    trainer.ppo.combine_rm_and_critic_server=true trainer.ppo.port="$port" trainer.ppo.token_file="$token_file"
run_actor "$KEDGE" ppo "${actor_arguments[@]}" pretrained_checkpoint.restore_from_path="$KEDGE_POLICY" "${prompts[@]}" \
    exp_manager.explicit_log_dir="$KEDGE_RUN/actor" \
    remote_critic_rm.combine_rm_and_critic_server=true \
    remote_critic_rm.critic.ip=127.0.0.1 remote_critic_rm.critic.port="$port" remote_critic_rm.token_file="$token_file"
exit "$status"
