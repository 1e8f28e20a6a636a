#!/usr/bin/env bash
# Runs killed with SIGKILL at random moments, also during a save, end as the run that was left alone. train_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
kills=$2

killed() { # folder, command...
  local folder=$1 count=0 saves=0
  shift
  while [ $count -lt "$kills" ]; do
    "$@" exp_manager.explicit_log_dir="$folder" >>"$folder.log" 2>&1 &
    local pid=$!
    # Every third one during a save, where one can be caught.
    if [ $((count % 3)) = 0 ]; then
      for _ in $(seq 300); do
        compgen -G "$folder/checkpoints/.unfinished-*" >/dev/null && saves=$((saves + 1)) && break
        kill -0 $pid 2>/dev/null || break
      done
    else
      sleep "0.$(printf '%03d' $((RANDOM % 500)))"
    fi
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    count=$((count + 1))
  done
  echo "$folder: $kills kills, $saves of them during a save; $(grep -c resumed "$folder.log") resumes"
  expect 0 'step 60 of 60' "$@" exp_manager.explicit_log_dir="$folder"
}
RANDOM=${KEDGE_SEED:-17}
expect 0 'done: step 60' "${sft[@]}" exp_manager.explicit_log_dir=sft_whole
killed sft_parts "${sft[@]}"
same_runs sft_whole sft_parts
expect 0 'done: step 60' "${rm[@]}" exp_manager.explicit_log_dir=rm_whole
killed rm_parts "${rm[@]}"
same_runs rm_whole rm_parts
exit $((failures > 0))
