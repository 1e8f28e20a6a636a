# Sourced by fault_actor_test.sh and fault_critic_test.sh, after fault_support.sh: a run of kedge ppo in the folder `run`, its critic's server in `critic`.
port=$(free_port)
actor=("${ppo[@]}" trainer.ppo.max_steps=$steps rollouts.keep=all remote_critic_rm.critic.port="$port" exp_manager.explicit_log_dir=run)
critic=("${serve_critic[@]}" trainer.ppo.port="$port" exp_manager.explicit_log_dir=critic)
critic_pid=
begin_critic() {
  "${critic[@]}" >>critic.txt 2>&1 &
  critic_pid=$!
}
end_critic() {
  kill -TERM "$critic_pid" 2>/dev/null
  wait "$critic_pid"
}
fresh() { rm -rf run critic && mkdir run critic; }
prepare_half() { rm -rf run; }
# The folder alone is there before the critic's server is.
is_saving() { [ -n "$(ls -A run/checkpoints 2>/dev/null)" ]; }
half() {
  rm -rf run critic
  cp -a half run
  cp -a half_critic critic
}
again() {
  local status
  : >critic.txt
  begin_critic
  "${actor[@]}" >again.txt 2>&1
  status=$?
  end_critic || fail "the critic ends with $?: $(tail -n 3 critic.txt)"
  return $status
}
same() {
  local one other file
  same_models whole run "$1"
  same_numbers whole run "$1" out.txt
  same_rollouts whole run "$1" out.txt
  same_numbers whole_critic critic "$1" out.txt critic.txt
  one=$(critic_last whole_critic) other=$(critic_last critic)
  for file in model/model.safetensors state/state.safetensors state/state.json; do
    cmp "$one/$file" "$other/$file" || fail "$1: another critic: $file"
  done
}

fresh
again || fail "the run that is left alone: $(tail -n 5 again.txt critic.txt)"
mv run whole
mv critic whole_critic
rm -rf critic
begin_critic
# Each try begins anew with the critic, too: it belongs to the run before.
stopped_in_the_middle half.log "${actor[@]}" remote_critic_rm.critic.take_over=true
end_critic || fail "the critic ends with $?: $(tail -n 3 critic.txt)"
mv run half
mv critic half_critic
