#!/usr/bin/env bash
# Checkpoints of the policy cannot be finished when the critic has already saved: so many in a row (one, or as said); the actor is killed at the same place
# of the next one. Policy and critic still have a step in common, and the run ends as the one that was left alone. ppo_lost_save_test.sh KEDGE SHIM [NUMBER]
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
shim=$(realpath "$2") num_failed=${3:-1}
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
ppo+=(trainer.ppo.val_check_interval=1 trainer.ppo.save_interval=1 trainer.ppo.max_epochs=2)
start_critic whole_critic
expect 0 'done: step 10 of 10' on whole
end_server
start_critic critic
# The record of the second checkpoint and of those after it cannot be written, and that of one more is never begun.
KEDGE_FAULT_FOLDER=$PWD/run/checkpoints KEDGE_FAULT_PART=meta.json KEDGE_FAULT_CALL=write KEDGE_FAULT_N=2 KEDGE_FAULT_COUNT=$num_failed KEDGE_FAULT_ERRNO=28 \
  KEDGE_FAULT_KILL_N=$((2 + num_failed)) LD_PRELOAD=$shim on run >run.log 2>&1
code=$?
[ $code = 137 ] || fail "the actor was not killed, but ended with $code: $(tail -n 5 run.log)"
grep -q 'the checkpoint of step 2 could not be saved: .*meta.json: cannot be written: No space left' run.log || fail "no save failed: $(tail -n 5 run.log)"
labels() { for meta in critic/checkpoints/*/meta.json; do grep -o '"actor_step": [0-9]*' "$meta" | tr -dc '0-9\n'; done | sort -n | tr '\n' ' '; }
echo "the critic's saves after $num_failed failed ones: $(labels)"
grep -q " $((2 + num_failed)) " <<<" $(labels)" || fail "the critic did not save before the policy did: $(labels)"
expect 0 'resumed from run/checkpoints/.* at step 1$' on run
end_server
same_online whole run
same_critics whole_critic critic
exit $((failures > 0))
