# The stories job as `kedge reinforce` and `kedge rs` read it, for all scripts that run it. To be read with `source` where `assets` is the
# folder with models and data.
prompts=$assets/prompts/stories/prompts.jsonl
lexicon=$assets/reward/vader/vader_lexicon.txt
story_prompts=("model.data.data_prefix={train: [$prompts], validation: [$prompts], test: [$prompts]}" model.data.add_bos=true
  model.encoder_seq_length=512)
lexicon_reward=(reward.sources.lexicon.kind=lexicon "reward.sources.lexicon.file=$lexicon" 'reward.clip=[-10,10]')

# As TRL has it (bench/rivals/trl_rloo.py says why each): 16 prompts x 4 samples of 64 tokens a step, one update, answers without an end
# kept, the signed KL summed over an answer, AdamW with TRL's settings. Rate, steps and seed are the caller's.
stories_job=("${story_prompts[@]}" "${lexicon_reward[@]}"
  model.reinforce.num_rollout_samples=16 model.reinforce.rollout_micro_batch_size=16 trainer.reinforce.num_rollouts_per_prompt=4
  model.reinforce.length_params.max_length=64 model.global_batch_size=64 model.micro_batch_size=64
  trainer.reinforce.unfinished=keep trainer.reinforce.loss_norm=sum trainer.reinforce.initial_policy_kl_penalty=0.05 trainer.reinforce.kl_estimator=k1
  trainer.reinforce.kl_reduce=sum trainer.reinforce.gradient_clip_val=1.0 trainer.reinforce.val_check_interval=0
  trainer.reinforce.save_interval=0 exp_manager.checkpoint_callback_params.save_nemo_on_train_end=false
  'model.optim.betas=[0.9,0.999]' model.optim.weight_decay=0 model.optim.sched.name=constant model.optim.sched.warmup_steps=0)

# The same with kedge grpo, whose own defaults are those of TRL's GRPOTrainer.
grpo_job=("${story_prompts[@]}" "${lexicon_reward[@]}"
  model.grpo.num_rollout_samples=16 model.grpo.rollout_micro_batch_size=16 trainer.grpo.num_rollouts_per_prompt=4
  model.grpo.length_params.max_length=64 trainer.grpo.val_check_interval=0
  trainer.grpo.save_interval=0 exp_manager.checkpoint_callback_params.save_nemo_on_train_end=false)

steps_of() { echo "trainer.$1.max_steps=$2 trainer.$1.max_epochs=$((($2 + 15) / 16))"; }  # 256 prompts are 16 steps of 16
