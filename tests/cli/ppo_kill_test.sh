#!/usr/bin/env bash
# The actor, the critic's server or both are killed with SIGKILL at random moments, also during saves and training calls, and started again: policy,
# critic and numbers end as those of the run that was left alone. ppo_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
kills=${KEDGE_PPO_KILLS:-$2}
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
# A kill comes after one to six steps: the run is long enough for all of them.
steps=$((kills * 10 + 30))
port=$(free_port)
ppo+=(trainer.ppo.max_epochs=$((steps / 5)) trainer.ppo.critic_warmup_steps=2 remote_critic_rm.critic.port="$port")
inside+=(trainer.ppo.max_epochs=$((steps / 5)) trainer.ppo.critic_warmup_steps=2)
serve_critic+=(trainer.ppo.port="$port")
RANDOM=${KEDGE_SEED:-17}
actor_pid= critic_pid=
begin_actor() { # folder
  "${ppo[@]}" exp_manager.explicit_log_dir="$1" >>"$1.log" 2>&1 &
  actor_pid=$!
}
begin_critic() { # folder
  "${serve_critic[@]}" exp_manager.explicit_log_dir="$1" >>"$1.log" 2>&1 &
  critic_pid=$!
}
is_alive() { kill -0 "$1" 2>/dev/null; }
end() { # process
  kill -9 "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}
journal_bytes() { cat "$1"/journals/* 2>/dev/null | wc -c; }

# wait_for_moment NAME CRITIC KIND: until a save or a training call is under way, or some time is over. Says which it was.
wait_for_moment() {
  local before end=$((${EPOCHREALTIME/[.,]/} + patience))
  before=$(journal_bytes "$2")
  while is_alive "$actor_pid" && [ ${EPOCHREALTIME/[.,]/} -lt $end ]; do
    case $3 in
      actor_save) compgen -G "$1/checkpoints/.unfinished-*" >/dev/null && echo "$3" && return ;;
      critic_save) compgen -G "$2/checkpoints/.unfinished-*" >/dev/null && echo "$3" && return ;;
      training) [ "$(journal_bytes "$2")" -gt "$before" ] && echo "$3" && return ;;
      any) sleep "0.0$(printf '%02d' $((RANDOM % 100)))" && break ;;
    esac
  done
  echo any
}

# killed NAME WHO: of a run NAME with its critic NAME_critic, WHO (actor, critic or both) is killed and started again.
killed() {
  local name=$1 who=$2 count=0 moment
  local -A moments=([actor_save]=0 [critic_save]=0 [training]=0 [any]=0)
  local kinds=(training actor_save critic_save any)
  begin_critic "${name}_critic"
  begin_actor "$name"
  while [ $count -lt "$kills" ]; do
    wait_for_step "$name" "$actor_pid" $(($(steps_done "$name") + RANDOM % 6 + 1))
    moment=$(wait_for_moment "$name" "${name}_critic" "${kinds[RANDOM % 4]}")
    is_alive "$actor_pid" || break
    moments[$moment]=$((moments[$moment] + 1))
    count=$((count + 1))
    # Both at once, or one a little before the other.
    [ "$who" != actor ] && end "$critic_pid"
    [ "$who" = both ] && [ $((RANDOM % 2)) = 0 ] && sleep "0.$((RANDOM % 3))"
    [ "$who" != critic ] && end "$actor_pid"
    [ "$who" != actor ] && [ $((RANDOM % 2)) = 0 ] && begin_critic "${name}_critic"
    [ "$who" != critic ] && begin_actor "$name"
    [ "$who" != actor ] && ! is_alive "$critic_pid" && sleep "0.$((RANDOM % 5))" && begin_critic "${name}_critic"
  done
  wait "$actor_pid"
  local code=$?
  kill -INT "$critic_pid"
  if [ $code != 0 ] || ! grep -qE "done: step $steps of $steps" "$name.log"; then
    fail "the run $name ends with $code after $count kills: $(tail -n 20 "$name.log")"
    wait "$critic_pid"
    return
  fi
  [ $count = "$kills" ] || fail "only $count kills of $name: the run was over"
  wait "$critic_pid" || fail "the critic ends with $?: $(tail -n 20 "${name}_critic.log")"
  echo "$name: $count kills of $who (during a save of the actor ${moments[actor_save]}, of the critic ${moments[critic_save]}, a training call" \
    "${moments[training]}, at any time ${moments[any]}); actor: $(grep -c 'resumed from' "$name.log") resumes," \
    "$(grep -c 'reusing the answers recorded before' "$name.log") steps with recorded answers, $(grep -c 'is back after' "$name.log") waits for the critic; critic:" \
    "$(grep -c 'restored to actor_step' "${name}_critic.log") returns, $(grep -c 'replayed .* training calls' "${name}_critic.log") starts that made calls again"
  same_online whole "$name"
  same_critics whole_critic "${name}_critic"
}

begin_critic whole_critic
began=${EPOCHREALTIME/[.,]/}
begin_actor whole
wait "$actor_pid" || fail "the run that is left alone does not end well: $(tail -n 20 whole.log)"
kill -INT "$critic_pid"
wait "$critic_pid"
# How long a kill waits for its moment, in microseconds: on a fast machine the run would otherwise be over before the last of them.
set_patience() {
  patience=$(((${EPOCHREALTIME/[.,]/} - began) / (kills + 3)))
  [ $patience -lt 3000000 ] || patience=3000000
}
set_patience
killed shot actor
grep -qE 'resumed from shot/checkpoints/.* at step [0-9]+' shot.log || fail "it does not say that it went on: $(cat shot.log)"
grep -qE 'restored to actor_step [0-9]*[1-9][0-9]*: step [0-9]+, [0-9]+ training calls' shot_critic.log || fail "the critic did not go back: $(cat shot_critic.log)"
killed widowed critic
grep -q 'resumed from' widowed.log && fail 'the actor was not left alone'
grep -qE "the critic server localhost:$port is unreachable \(.*\); waited " widowed.log || fail "it does not say what it waits for: $(cat widowed.log)"
grep -qE 'replayed [0-9]+ training calls that came after the checkpoint' widowed_critic.log || fail "the critic made no calls again: $(cat widowed_critic.log)"
[ "$(grep -c 'restored to actor_step' widowed_critic.log)" = 1 ] || fail 'a critic that was killed went back further than to its last call'
killed lost both

# A critic in the process dies with it. It keeps no journal in which a training call could be seen.
begin_inside() {
  "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir="$1" >>"$1.log" 2>&1 &
  actor_pid=$!
}
began=${EPOCHREALTIME/[.,]/}
begin_inside inside_whole
wait "$actor_pid" || fail "a run with its critic inside does not end well: $(tail -n 20 inside_whole.log)"
set_patience
begin_inside inside
count=0 kinds=(actor_save critic_save any)
declare -A moments=([actor_save]=0 [critic_save]=0 [any]=0)
while [ $count -lt "$kills" ]; do
  wait_for_step inside "$actor_pid" $(($(steps_done inside) + RANDOM % 4 + 1))
  moment=$(wait_for_moment inside inside/critic "${kinds[RANDOM % 3]}")
  is_alive "$actor_pid" || break
  moments[$moment]=$((moments[$moment] + 1)) count=$((count + 1))
  end "$actor_pid"
  begin_inside inside
done
wait "$actor_pid" || fail "a run with its critic inside does not end well: $(tail -n 20 inside.log)"
[ $count = "$kills" ] || fail "only $count kills of a run with its critic inside"
echo "inside: $count kills (during a save of the policy ${moments[actor_save]}, of the critic ${moments[critic_save]}, at any time" \
  "${moments[any]}); $(grep -c 'resumed from' inside.log) resumes, $(grep -c 'restored to actor_step' inside.log) returns"
same_online inside_whole inside
same_critics inside_whole/critic inside/critic
exit $((failures > 0))
