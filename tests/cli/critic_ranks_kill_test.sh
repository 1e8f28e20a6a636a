#!/usr/bin/env bash
# One of the two ranks of a critic's server, the first or the second, is killed with SIGKILL at random moments, also during saves and training calls: the
# other ends and names it, the job is started again with the same command, and policy, critic and numbers end as those of the run that was left alone.
# critic_ranks_kill_test.sh KEDGE MPIRUN KILLS
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
kills=$3
. "$here/online_support.sh"
. "$here/ppo_support.sh"
RANDOM=${KEDGE_SEED:-17}
# A kill comes after one to three steps: the run is long enough for all of them.
steps=$((kills * 5 + 20))
port=$(free_port)
ppo+=(trainer.ppo.max_epochs=$((steps / 5)) remote_critic_rm.critic.port="$port")
serve=("$2" -n 2 "${serve_critic[@]}" trainer.ppo.port="$port" model.sharding=all)
actor_pid= critic_pid=
begin_actor() { # folder
  "${ppo[@]}" exp_manager.explicit_log_dir="$1" >"$1.log" 2>&1 &
  actor_pid=$!
}
begin_critic() { # folder, log
  "${serve[@]}" exp_manager.explicit_log_dir="$1" >"$2" 2>&1 &
  critic_pid=$!
}
is_alive() { kill -0 "$1" 2>/dev/null; }
journal_bytes() { cat "$1"/journals/* 2>/dev/null | wc -c; }
# stop_critic LOG: by a signal to rank 0 alone.
stop_critic() {
  kill -INT "$(sed -nE 's/.*kill -SIGINT ([0-9]+)/\1/p' "$1")"
  wait "$critic_pid" || fail "the critic ends with $?: $(tail -n 20 "$1")"
}

# wait_for_moment CRITIC KIND: until a save or a training call is under way, or some time is over. Says which it was.
wait_for_moment() {
  local before end=$((${EPOCHREALTIME/[.,]/} + 1000000))
  before=$(journal_bytes "$1")
  while is_alive "$actor_pid" && [ ${EPOCHREALTIME/[.,]/} -lt $end ]; do
    case $2 in
      save) compgen -G "$1/checkpoints/.unfinished-*" >/dev/null && echo "$2" && return ;;
      training) [ "$(journal_bytes "$1")" -gt "$before" ] && echo "$2" && return ;;
      any) sleep "0.0$(printf '%02d' $((RANDOM % 100)))" && break ;;
    esac
  done
  echo any
}

begin_critic whole_critic whole_critic.log
begin_actor whole
wait "$actor_pid" || fail "the run that is left alone does not end well: $(tail -n 20 whole.log)"
stop_critic whole_critic.log

begin_critic shot_critic shot_critic.0.log
begin_actor shot
count=0 named=0
declare -A moments=([save]=0 [training]=0 [any]=0) victims=([0]=0 [1]=0)
kinds=(training save any)
while [ $count -lt "$kills" ]; do
  wait_for_step shot "$actor_pid" $(($(steps_done shot) + RANDOM % 3 + 1))
  rank=$((RANDOM % 2))
  mapfile -t pids < <(ranks_below "$critic_pid" | sort -n)
  moment=$(wait_for_moment shot_critic "${kinds[RANDOM % 3]}")
  is_alive "$actor_pid" || break
  [ -n "${pids[$rank]:-}" ] && kill -9 "${pids[$rank]}" 2>/dev/null || continue
  # Generous: what is asserted is that it ends, not when.
  for _ in $(seq 600); do is_alive "$critic_pid" || break; sleep 0.1; done
  is_alive "$critic_pid" && { fail "kill $count of ${pids[$rank]}: the job goes on: $(tail -n 5 shot_critic.$count.log)"; kill -9 "$critic_pid" "${pids[@]}" 2>/dev/null; }
  wait "$critic_pid" && fail "kill $count: the job ends with 0"
  grep -qE "rank [01] \(pid ${pids[$rank]} on .*\) was killed" shot_critic.$count.log && named=$((named + 1)) ||
    fail "kill $count of ${pids[$rank]}: nobody names it: $(cat shot_critic.$count.log)"
  moments[$moment]=$((moments[$moment] + 1)) victims[$rank]=$((victims[$rank] + 1)) count=$((count + 1))
  begin_critic shot_critic shot_critic.$count.log
done
wait "$actor_pid" || fail "the run ends with $? after $count kills: $(tail -n 20 shot.log)"
[ $count = "$kills" ] || fail "only $count kills: the run was over"
stop_critic shot_critic.$count.log
echo "$count kills (rank 0: ${victims[0]}, rank 1: ${victims[1]}; during a save ${moments[save]}, a training call ${moments[training]}, at any time ${moments[any]})," \
  "$named named by the other rank; $(grep -c 'is back after' shot.log) waits of the actor," \
  "$(cat shot_critic.*.log | grep -c 'replayed .* training calls') starts that made calls again"
grep -q 'resumed from' shot.log && fail 'the actor was not left alone'
grep -qE 'replayed [0-9]+ training calls that came after the checkpoint' shot_critic.*.log || fail 'the critic made no calls again'
same_online whole shot
same_critics whole_critic shot_critic
cmp "$(critic_last whole_critic)/state/state.1.safetensors" "$(critic_last shot_critic)/state/state.1.safetensors" || fail 'the states of rank 1 differ'
exit $((failures > 0))
