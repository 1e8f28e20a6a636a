#!/usr/bin/env bash
# Runs killed with SIGKILL at random moments, also during a save, end as the run that was left alone. train_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
kills=$2

# Until the run has come some steps further than before, so that killing it costs something, and sometimes little.
wait_for_steps() { # folder, process, lines
  local goal
  goal=$(($(cat "$1/metrics.jsonl" 2>/dev/null | wc -l) + $3))
  while kill -0 "$2" 2>/dev/null && [ "$(cat "$1/metrics.jsonl" 2>/dev/null | wc -l)" -lt $goal ]; do sleep 0.002; done
}

killed() { # folder, command...
  local folder=$1 count=0 hits=0 saves=0
  shift
  while [ $count -lt "$kills" ]; do
    "$@" exp_manager.explicit_log_dir="$folder" >>"$folder.log" 2>&1 &
    local pid=$!
    wait_for_steps "$folder" $pid $((RANDOM % 10 + 1))
    # Every other one during a save, where one can be caught.
    if [ $((count % 2)) = 0 ]; then
      while kill -0 $pid 2>/dev/null; do
        compgen -G "$folder/checkpoints/.unfinished-*" >/dev/null && saves=$((saves + 1)) && break
      done
    else
      sleep "0.0$(printf '%02d' $((RANDOM % 100)))"
    fi
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ] && hits=$((hits + 1))
    count=$((count + 1))
  done
  enough_kills "$folder" "$kills" $hits $saves
  [ $saves -ge 1 ] || fail "$folder: no kill came during a save"
  expect 0 'step 60 of 60|the run is complete' "$@" exp_manager.explicit_log_dir="$folder"
}
RANDOM=${KEDGE_SEED:-17}
expect 0 'done: step 60' "${sft[@]}" exp_manager.explicit_log_dir=sft_whole
killed sft_parts "${sft[@]}"
same_runs sft_whole sft_parts
expect 0 'done: step 60' "${rm[@]}" exp_manager.explicit_log_dir=rm_whole
killed rm_parts "${rm[@]}"
same_runs rm_whole rm_parts
exit $((failures > 0))
