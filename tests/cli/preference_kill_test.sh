#!/usr/bin/env bash
# DPO and KTO runs killed with SIGKILL at random moments, also while the reference's log-probabilities are computed, end as the run that was left alone, however
# these are kept. preference_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/preference_support.sh"
kills=$2

killed() { # folder, command...
  local folder=$1 count=0 hits=0
  shift
  while [ $count -lt "$kills" ]; do
    "$@" exp_manager.explicit_log_dir="$folder" >>"$folder.log" 2>&1 &
    local pid=$! goal
    # Some at once, before there is a step; the others when the run has come further than before, mostly beyond a checkpoint.
    goal=$(($(cat "$folder/metrics.jsonl" 2>/dev/null | wc -l) + RANDOM % 12 + 4))
    [ $((count % 4)) = 0 ] && goal=0
    while kill -0 $pid 2>/dev/null && [ "$(cat "$folder/metrics.jsonl" 2>/dev/null | wc -l)" -lt $goal ]; do sleep 0.002; done
    sleep "0.$(printf '%02d' $((RANDOM % (goal == 0 ? 40 : 10))))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ] && hits=$((hits + 1))
    count=$((count + 1))
  done
  enough_kills "$folder" "$kills" $hits 0
  expect 0 'step 60 of 60|the run is complete' "$@" exp_manager.explicit_log_dir="$folder"
}
RANDOM=${KEDGE_SEED:-23}
for name in dpo kto; do
  declare -n command=$name
  expect 0 'done: step 60' "${command[@]}" exp_manager.explicit_log_dir=${name}_whole
  for kept in memory disk; do
    killed ${name}_$kept "${command[@]}" model.$name.reference_cache=$kept
    same_runs ${name}_whole ${name}_$kept
  done
done
exit $((failures > 0))
