#!/usr/bin/env bash
# Runs that are killed with SIGKILL at random moments, also during a save, and whose reward server is killed too, end as the runs that were left
# alone. online_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
kills=$2
. "$here/train_support.sh"
. "$here/online_support.sh"
# A kill comes after one to eight steps: the runs are long enough that most of them hit.
epochs=$((kills / 2 + 4)) steps=$((epochs * 10))
reinforce+=(trainer.reinforce.max_epochs=$epochs)
rs+=(trainer.rs.max_epochs=$epochs)
RANDOM=${KEDGE_SEED:-17}

# Calls that wait together are computed together by default; what is added up in which order would then depend on when they came.
"$kedge" init judge --shape tiny --tokenizer letters --num-labels 1 --seed 3 --threads 1 >/dev/null 2>&1
port=$(free_port)
serve=("$kedge" serve reward rm_model_file=judge trainer.accelerator=cpu trainer.precision=32 trainer.threads=1 inference.merge=false inference.port="$port")
served=(remote_rm.host=localhost remote_rm.port="$port")
server_pid=
begin_server() {
  "${serve[@]}" >>server.log 2>&1 &
  server_pid=$!
}
kill_server() {
  kill -9 "$server_pid" 2>/dev/null
  wait "$server_pid" 2>/dev/null
}

# killed FOLDER SERVER COMMAND...: with SERVER=1 the reward server goes down too, before or after the run does, or while it goes on.
killed() {
  local folder=$1 with_server=$2 count=0 hits=0 saves=0 outages=0 pid
  shift 2
  while [ $count -lt "$kills" ]; do
    "$@" exp_manager.explicit_log_dir="$folder" >>"$folder.log" 2>&1 &
    pid=$!
    wait_for_step "$folder" $pid $(($(steps_done "$folder") + RANDOM % 8 + 1))
    if [ "$with_server" = 1 ]; then
      kill_server
      outages=$((outages + 1))
      # Every third time the run finds it back and goes on before it is killed itself.
      if [ $((count % 3)) = 0 ]; then
        begin_server
        wait_for_step "$folder" $pid $(($(steps_done "$folder") + 2))
      fi
    fi
    # Every other one during a save, where one can be caught.
    if [ $((count % 2)) = 0 ] && [ "$with_server" = 0 ]; then
      while kill -0 $pid 2>/dev/null; do
        compgen -G "$folder/checkpoints/.unfinished-*" >/dev/null && saves=$((saves + 1)) && break
      done
    else
      sleep "0.0$(printf '%02d' $((RANDOM % 100)))"
    fi
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ] && hits=$((hits + 1))
    [ "$with_server" = 1 ] && ! kill -0 "$server_pid" 2>/dev/null && begin_server
    count=$((count + 1))
  done
  enough_kills "$folder" "$kills" $hits $saves
  [ "$with_server" = 1 ] || [ $saves -ge 1 ] || fail "$folder: no kill came during a save"
  echo "$folder: the server killed $outages times," \
    "$(grep -c 'reusing the answers recorded before' "$folder.log") steps with recorded answers"
  expect 0 "step $steps of $steps|the run is complete" "$@" exp_manager.explicit_log_dir="$folder"
}

# whole FOLDER COMMAND...: the run that is left alone.
whole() {
  local folder=$1
  shift
  expect 0 "done: step $steps of $steps" "$@" exp_manager.explicit_log_dir="$folder"
}
whole reinforce_whole "${reinforce[@]}" "${rule[@]}"
killed reinforce_parts 0 "${reinforce[@]}" "${rule[@]}"
same_online reinforce_whole reinforce_parts
killed reinforce_none 0 "${reinforce[@]}" "${rule[@]}" rollouts.keep=none
same_runs reinforce_whole reinforce_none
grep -q 'reusing the answers recorded before' reinforce_none.log && fail 'answers come from records that are not kept'
whole rs_whole "${rs[@]}" "${rule[@]}"
killed rs_parts 0 "${rs[@]}" "${rule[@]}"
same_online rs_whole rs_parts

# Before its first save: from the start again, with the answers that were recorded; a record that is damaged is not used.
late=(trainer.reinforce.val_check_interval=$steps)
whole late_whole "${reinforce[@]}" "${rule[@]}" "${late[@]}"
"${reinforce[@]}" "${rule[@]}" "${late[@]}" exp_manager.explicit_log_dir=late_parts >late.log 2>&1 &
pid=$!
wait_for_step late_parts $pid 8
kill -9 $pid
wait $pid 2>/dev/null
cp -r late_parts edited
truncate -s 700 late_parts/rollouts/step-2.jsonl
rm -f late_parts/rollouts/step-3.jsonl
expect 0 "done: step $steps of $steps" "${reinforce[@]}" "${rule[@]}" "${late[@]}" exp_manager.explicit_log_dir=late_parts
grep -q 'step 0: reusing the answers recorded before' late_parts/log.txt || fail "nothing that was recorded is used: $(cat late_parts/log.txt)"
grep -qE 'the answers of step 2 cannot be reused: .*step-2.jsonl' late_parts/log.txt || fail "a damaged record: $(cat late_parts/log.txt)"
grep -q 'step [23]: reusing the answers recorded before' late_parts/log.txt && fail 'records that are damaged or gone are used'
same_online late_whole late_parts
# Nor one of other prompts.
sed 's/ c"/ c c"/' prompts.jsonl >other.jsonl
expect 0 'done: step 2 of 2' "${reinforce[@]}" "${rule[@]}" exp_manager.explicit_log_dir=edited trainer.reinforce.max_steps=2 'model.data.data_prefix.train=[other.jsonl]'
grep -q 'reusing the answers recorded before' edited/log.txt && fail 'answers to other prompts are used'
[ "$(grep -c '"prompt":"b* c c"' edited/rollouts/step-0.jsonl)" = 16 ] || fail "not the prompts of the file: $(cut -c 1-100 edited/rollouts/step-0.jsonl)"

begin_server
whole served_whole "${reinforce[@]}" "${served[@]}"
killed served_parts 1 "${reinforce[@]}" "${served[@]}"
same_online served_whole served_parts
whole rs_served_whole "${rs[@]}" "${served[@]}"
killed rs_served_none 1 "${rs[@]}" "${served[@]}" rollouts.keep=none
same_runs rs_served_whole rs_served_none
kill_server
exit $((failures > 0))
