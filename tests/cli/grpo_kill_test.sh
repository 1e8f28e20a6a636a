#!/usr/bin/env bash
# Runs of kedge grpo with dynamic sampling, and of kedge rloo, that are killed at random moments end as those that were left alone. grpo_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
kills=$2
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/grpo_support.sh"
epochs=$((kills / 2 + 4)) steps=$((epochs * 10))
RANDOM=${KEDGE_SEED:-23}
# killed FOLDER COMMAND...
killed() {
  local folder=$1 count=0 hits=0 pid
  shift
  while [ $count -lt "$kills" ]; do
    "$@" exp_manager.explicit_log_dir="$folder" >>"$folder.log" 2>&1 &
    pid=$!
    wait_for_step "$folder" $pid $(($(steps_done "$folder") + RANDOM % 8 + 1))
    sleep "0.0$(printf '%02d' $((RANDOM % 100)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ] && hits=$((hits + 1))
    count=$((count + 1))
  done
  echo "$folder: killed $hits times, $(grep -c 'reusing the answers recorded before' "$folder.log") steps with recorded answers"
  [ $((hits * 2)) -ge "$kills" ] || fail "$folder: only $hits of $kills kills hit"
  expect 0 "step $steps of $steps|the run is complete" "$@" exp_manager.explicit_log_dir="$folder"
}
dynamic=("${grpo[@]}" "${dynamic[@]}" trainer.grpo.max_epochs=$epochs model.optim.lr=3e-4)
expect 0 "done: step $steps of $steps" "${dynamic[@]}" exp_manager.explicit_log_dir=whole
killed parts "${dynamic[@]}"
same_online whole parts
killed none "${dynamic[@]}" rollouts.keep=none
same_runs whole none
single=("${rloo[@]}" trainer.rloo.max_epochs=$epochs)
expect 0 "done: step $steps of $steps" "${single[@]}" exp_manager.explicit_log_dir=rloo_whole
killed rloo_parts "${single[@]}"
same_online rloo_whole rloo_parts
exit $((failures > 0))
