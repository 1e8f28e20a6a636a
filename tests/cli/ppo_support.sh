# Sourced by the tests of kedge ppo, after online_support.sh: a judge, the critic's server, and short forms.
"$kedge" init judge --shape tiny --tokenizer letters --num-labels 1 --seed 3 --threads 1 >/dev/null 2>&1
# Four epochs of five steps; a step has eight answers. The critic and the policy learn from them in two updates each.
for_ppo=(model.global_batch_size=4 model.ppo.num_rollout_samples=8 model.ppo.num_val_samples=8 model.ppo.length_params.max_length=16 \
  'model.ppo.sampling_params.end_strings=[]' trainer.ppo.max_epochs=4 trainer.ppo.val_check_interval=2)
ppo=("$kedge" ppo "${online[@]}" "${for_ppo[@]}")
# The same with a critic in the process, which learns as the served one does below. Its folder is critic/ in the run's.
inside=("${ppo[@]}" local_critic.restore_from_path=judge local_critic.model.encoder_seq_length=64 local_critic.model.global_batch_size=4 \
  local_critic.model.micro_batch_size=4 local_critic.model.optim.lr=1e-3 local_critic.model.optim.sched.name=constant local_critic.model.optim.sched.warmup_steps=0)
# Calls that wait together are computed together by default; what is added up in which order would then depend on when they came.
serve_critic=("$kedge" serve critic pretrained_checkpoint.restore_from_path=judge "${compute[@]}" trainer.ppo.merge=false \
  exp_manager.create_tensorboard_logger=false model.encoder_seq_length=64 model.global_batch_size=4 model.micro_batch_size=4 model.optim.lr=1e-3 \
  model.optim.sched.name=constant model.optim.sched.warmup_steps=0)
serve_judge=("$kedge" serve reward rm_model_file=judge "${compute[@]}" inference.merge=false)
# critic_last FOLDER: a critic keeps its three newest checkpoints.
critic_last() { ls -d "$1"/checkpoints/*-last | sort -V | tail -n 1; }
# same_critics FOLDER OTHER: the newest checkpoints of two critics, and the numbers of their updates without times. (Not the names of calls: those are random.)
same_critics() {
  local one other file
  one=$(critic_last "$1") other=$(critic_last "$2")
  [ "$(basename "$one")" = "$(basename "$other")" ] || fail "the critics of $1 and $2 stand elsewhere: $one, $other"
  diff -rq "$one/model" "$other/model" || fail "the critics of $1 and $2 differ"
  for file in state.safetensors state.json; do
    cmp "$one/state/$file" "$other/state/$file" || fail "$file of the critics $1 and $2 differ"
  done
  diff <(numbers_of "$1") <(numbers_of "$2") >/dev/null || fail "the numbers of the critics $1 and $2 differ: $(diff <(numbers_of "$1") <(numbers_of "$2") | head -n 4)"
}
start_critic() { # folder, setting...: sets $server and $port
  local folder=$1
  shift
  start_server "$folder.log" "${serve_critic[@]}" exp_manager.explicit_log_dir="$folder" trainer.ppo.port=0 "$@"
}
# on NAME SETTING...: a run NAME with the critic of $port.
on() {
  local name=$1
  shift
  "${ppo[@]}" exp_manager.explicit_log_dir="$name" remote_critic_rm.critic.port="$port" "$@"
}
