# Actor and critic of the PPO benches, as two processes. To be read with `source` after paths.sh, where `threads` and `seed` are set.

# As TRL's PPOTrainer has it: four passes over a step's answers in one minibatch, the signed KL on every token, whitened advantages, AdamW
# with TRL's settings and a constant rate, the critic's values held within 0.2 of the old ones. Answers without an end are kept. The rates
# are the caller's.
adamw=('model.optim.betas=[0.9,0.999]' model.optim.weight_decay=0 model.optim.sched.name=constant model.optim.sched.warmup_steps=0)
cpu=(trainer.precision=32 trainer.accelerator=cpu)
ppo_job=("${cpu[@]}" "${adamw[@]}" model.ppo.num_rollout_samples=64 model.ppo.rollout_micro_batch_size=64 model.global_batch_size=64
  model.micro_batch_size=64 trainer.ppo.ppo_epochs=4 trainer.ppo.unfinished=keep trainer.ppo.kl_estimator=k1 trainer.ppo.discount_factor=1
  trainer.ppo.gae_lambda=0.95 trainer.ppo.normalize_advantages=true trainer.ppo.gradient_clip_val=1.0 trainer.ppo.val_check_interval=0
  trainer.ppo.save_interval=0)
critic_job=("${cpu[@]}" "${adamw[@]}" trainer.ppo.combine_rm_and_critic_server=false trainer.ppo.port=0 trainer.ppo.inference_micro_batch_size=64
  trainer.ppo.gradient_clip_val=1.0 model.global_batch_size=64 model.micro_batch_size=64 model.forward_micro_batch_size=64
  model.loss_clip_val=0.2)

# run_ppo COMMANDS NAME MODEL KEY=VALUE ...: trains a copy of MODEL with a critic that starts from MODEL too, under a new head. Settings
# are the actor's; those in `critic_keys` the critic's. The actor's run is $work/NAME, the critic's $work/NAME-critic; both commands are
# added to the file COMMANDS.
run_ppo() {
  local commands=$1 name=$2 model=$3
  shift 3
  rm -rf "$work/$name" "$work/$name-critic"
  local critic=("$kedge" serve critic "${critic_job[@]}" pretrained_checkpoint.restore_from_path="$model" trainer.threads="$threads"
    model.seed="$seed" "${critic_keys[@]}" exp_manager.explicit_log_dir="$work/$name-critic")
  noted "$commands" "${critic[@]}"
  start_server "$work/$name-critic.txt" "${critic[@]}"
  local actor=("$kedge" ppo "${ppo_job[@]}" pretrained_checkpoint.restore_from_path="$model" trainer.threads="$threads" model.seed="$seed" "$@"
    remote_critic_rm.combine_rm_and_critic_server=false remote_critic_rm.critic.ip=localhost remote_critic_rm.critic.port="$port"
    exp_manager.explicit_log_dir="$work/$name")
  noted "$commands" "${actor[@]}"
  quietly "${actor[@]}"
  stop_server
}
