#!/usr/bin/env bash
# The power of a machine fails on which kedge ppo and its critic's server run; then that of the critic's alone, while the actor waits for it: what the
# critic acknowledged is there. power_cut_ppo_test.sh KEDGE SHIM STRIDE: every STRIDE-th point
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
. "$here/power_cut_support.sh"
port=$(free_port)
actor=("${ppo[@]}" trainer.ppo.max_steps=$steps rollouts.keep=all remote_critic_rm.critic.port="$port" exp_manager.explicit_log_dir=disk/run)
critic=("${serve_critic[@]}" trainer.ppo.port="$port" exp_manager.explicit_log_dir=disk/critic)
end_critic() {
  kill -TERM "$critic_pid" 2>/dev/null
  wait "$critic_pid" || fail "the critic ends with $?: $(tail -n 3 critic.txt)"
}
again() {
  local status
  "${critic[@]}" >critic.txt 2>&1 &
  critic_pid=$!
  "${actor[@]}" >again.txt 2>&1
  status=$?
  end_critic
  return $status
}
same() {
  same_online whole disk/run
  same_critics whole_critic disk/critic
  [ "$failures" = "${failed:-0}" ] || { echo "  ($1)"; failed=$failures; }
}
# both SETTING...: actor and critic write one log.
both() {
  (logged "${critic[@]}") >critic.txt 2>&1 &
  critic_pid=$!
  (logged "${actor[@]}" "$@") >both.log 2>&1 || fail "without a cut: $(tail -n 3 both.log)"
  end_critic
}

mkdir disk disk.before
both
cp -a disk/run whole
cp -a disk/critic whole_critic
cut_everywhere 'both from the start'
rm -rf disk disk.before disk.log
mkdir disk
both trainer.ppo.max_steps=2
rm disk.log
cp -a disk disk.before
both
grep -q 'resumed from' both.log || fail 'nothing was resumed'
cut_everywhere 'both resumed'

# The critic dies in the middle of one of its calls, and only what it had synced is there when it is started again.
rm -rf disk disk.before disk.log
mkdir disk disk.before
num_calls=0 num_cuts=0
alone() { # call, variant
  local point what="power cut of the critic, $2, before its call $1" actor_pid
  rm -rf disk disk.log
  mkdir disk
  (KEDGE_DISK_CUT_AT=$1 logged "${critic[@]}") >critic.txt 2>&1 &
  critic_pid=$!
  "${actor[@]}" >again.txt 2>&1 &
  actor_pid=$!
  while kill -0 $actor_pid 2>/dev/null && kill -0 $critic_pid 2>/dev/null; do sleep 0.02; done
  if ! kill -0 $critic_pid 2>/dev/null; then
    wait $critic_pid 2>/dev/null
    point=$(python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import power_cut; print(len(power_cut.read_log("disk.log")))' "$here/../support")
    num_cuts=$((num_cuts + 1))
    # The actor's part of the disk is its own machine's.
    python3 "$cutter" build disk.log disk disk.before "$point" "$2" left || fail "$what: cannot be built"
    rm -rf disk/critic
    [ ! -d left/critic ] || mv left/critic disk/critic
    rm -rf left
    "${critic[@]}" >critic.txt 2>&1 &
    critic_pid=$!
  fi
  wait $actor_pid || fail "$what: the actor ends with $?: $(tail -n 3 again.txt critic.txt)"
  end_critic
  same "$what"
}
rm -rf disk && mkdir disk
(logged "${critic[@]}") >critic.txt 2>&1 &
critic_pid=$!
"${actor[@]}" >again.txt 2>&1 || fail "without a cut: $(tail -n 3 again.txt)"
end_critic
num_calls=$(python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import power_cut; print(len(power_cut.read_log("disk.log")))' "$here/../support")
variants=(dropped emptied torn)
for ((call = 1 + stride / 2; call <= num_calls; call += stride)); do alone "$call" "${variants[call % 3]}"; done
echo "the critic alone: $num_calls calls, $num_cuts cuts"
[ $num_calls -ge 150 ] && [ $num_cuts -ge $((num_calls / stride / 2)) ] || fail "only $num_cuts cuts of the critic's $num_calls calls"
counted 600 start save journal restore metrics record model
exit $((failures > 0))
