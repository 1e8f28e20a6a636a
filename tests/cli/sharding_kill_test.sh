#!/usr/bin/env bash
# A rank of a sharded run is killed or stopped at random moments: the others name it, the job ends, and in the end the run has the bits of one that was
# left alone. sharding_kill_test.sh KEDGE MPIRUN KILLS [RANKS SETTING...]
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
kills=$3 ranks=${4:-3}
settings=("${@:5}")
[ ${#settings[@]} -gt 0 ] || settings=(model.sharding=all)
. "$here/online_support.sh"
RANDOM=${KEDGE_SEED:-17}
epochs=$((kills + 4))
rewarded=("$2" -n $ranks "${reinforce[@]}" "${rule[@]}" model.global_batch_size=12 model.reinforce.num_rollout_samples=6 model.reinforce.num_val_samples=6
  trainer.reinforce.num_rollouts_per_prompt=2 trainer.reinforce.max_epochs=$epochs "${settings[@]}" model.optim.lr=3e-4)

"${rewarded[@]}" exp_manager.explicit_log_dir=alone >alone.log 2>&1 || fail "the run that is left alone: $(tail -n 3 alone.log)"
hits=0 named=0
for kill in $(seq "$kills"); do
  KEDGE_WATCHDOG=3 "${rewarded[@]}" exp_manager.explicit_log_dir=shot >shot.$kill.log 2>&1 &
  job=$!
  wait_for_step shot $job $(($(steps_done shot) + RANDOM % 4 + 1))
  sleep "0.0$(printf '%02d' $((RANDOM % 100)))"
  mapfile -t pids < <(ranks_below $job)
  victim=${pids[$((RANDOM % ranks))]:-}
  signal=$([ $((RANDOM % 3)) = 0 ] && echo STOP || echo KILL)
  [ -n "$victim" ] && kill -"$signal" "$victim" 2>/dev/null && hit=yes || hit=no
  # Generous: what is asserted is that it ends, not when.
  for _ in $(seq 600); do kill -0 $job 2>/dev/null || break; sleep 0.1; done
  kill -0 $job 2>/dev/null && { fail "kill $kill ($signal of $victim): the job goes on: $(tail -n 5 shot.$kill.log)"; kill -9 $job "${pids[@]}" 2>/dev/null; }
  wait $job
  [ $? != 0 ] || hit=no
  ! grep -q ' done: step' shot.$kill.log || hit=no  # it came too late
  [ $hit = yes ] || continue
  hits=$((hits + 1))
  grep -qE "error \[rank [0-9]\] rank [0-9] \(pid $victim on .*\) (was killed|has not answered)" shot.$kill.log && named=$((named + 1)) ||
    fail "kill $kill ($signal of $victim): nobody names it: $(cat shot.$kill.log)"
done
echo "$kills kills, $hits hit, $named named by other ranks"
[ $hits -ge $((kills / 3 + 1)) ] || fail "only $hits of $kills kills hit"
expect 0 'done: step|the run is complete' "${rewarded[@]}" exp_manager.explicit_log_dir=shot
same_online alone shot
for rank in $(seq $((ranks - 1))); do
  cmp "$(last_of alone)/state/state.$rank.safetensors" "$(last_of shot)/state/state.$rank.safetensors" || fail "the states of rank $rank differ"
done
exit $((failures > 0))
