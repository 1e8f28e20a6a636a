#!/usr/bin/env bash
# One call of the system fails in the critic's server of kedge ppo: in its start, its journal, a save or a restore. Where that ends it, it is started again
# while the actor waits. fault_critic_test.sh KEDGE SHIM STRIDE: every STRIDE-th call
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
. "$here/fault_support.sh"
. "$here/fault_ppo_support.sh"

faulty() {
  local actor_pid status
  (with_fault critic "${critic[@]}") >out.txt 2>&1 &
  critic_pid=$!
  "${actor[@]}" >actor.txt 2>&1 &
  actor_pid=$!
  code=0
  : >critic.txt
  while kill -0 $actor_pid 2>/dev/null; do
    if ! kill -0 $critic_pid 2>/dev/null; then
      wait $critic_pid
      status=$?
      [ $status = 0 ] || code=$status
      names_a_file out.txt || fail "the critic ends with $status and names no file: $(tail -n 3 out.txt)"
      begin_critic
    fi
    sleep 0.02
  done
  wait $actor_pid
  status=$?
  # The critic answered that it could not, and the actor tells its words.
  [ $status = 0 ] || { code=$status; cat actor.txt >>out.txt; }
  end_critic || code=$?
  [ $code = 143 ] && code=0
}

faults=()
for fault in "${disk_faults[@]}"; do # a critic makes no hard links
  [[ $fault = link:* ]] || faults+=("$fault")
done
sweep fresh "${faults[@]}"
sweep half "${faults[@]}"
swept 700 "${faults[@]}"
exit $((failures > 0))
