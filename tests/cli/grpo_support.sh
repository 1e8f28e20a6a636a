# Sourced by the tests of kedge grpo and rloo, after online_support.sh: short forms of them, as those of reinforce.
for_grpo=(model.grpo.num_rollout_samples=4 model.grpo.num_val_samples=8 model.grpo.length_params.max_length=16 'model.grpo.sampling_params.end_strings=[]' \
  trainer.grpo.max_epochs=2 trainer.grpo.val_check_interval=2 trainer.grpo.num_rollouts_per_prompt=4)
for_rloo=(model.rloo.num_rollout_samples=4 model.rloo.num_val_samples=8 model.rloo.length_params.max_length=16 'model.rloo.sampling_params.end_strings=[]' \
  trainer.rloo.max_epochs=2 trainer.rloo.val_check_interval=2)
grpo=("$kedge" grpo "${online[@]}" "${for_grpo[@]}" "${rule[@]}" model.global_batch_size=8)
rloo=("$kedge" rloo "${online[@]}" "${for_rloo[@]}" "${rule[@]}")
recipes=(cispo dapo dr_grpo grpo gspo liteppo reinforce_pp)
# With a reward of 0 or 1 the responses to a prompt often have the same.
dynamic=(trainer.grpo.use_dynamic_sampling=true 'reward.clip=[0,1]')
