#!/usr/bin/env bash
# Actor, critic's server and reward server of kedge ppo, which saves after every step, are killed with SIGKILL at random moments, one, two or all of them, and
# started again: policy, critic and numbers end as those of the run that was left alone. ppo_three_kill_test.sh KEDGE KILLS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
kills=$2
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
RANDOM=${KEDGE_SEED:-17}
steps=$((kills * 4 / 5 * 5 + 20))
declare -A ports=([critic]=$(free_port) [judge]=$(free_port)) pids=() counts=([actor]=0 [critic]=0 [judge]=0)
ppo+=(trainer.ppo.max_epochs=$((steps / 5)) trainer.ppo.val_check_interval=1 trainer.ppo.save_interval=1 model.ppo.num_val_samples=2
  remote_critic_rm.combine_rm_and_critic_server=false remote_critic_rm.critic.port="${ports[critic]}" remote_critic_rm.reward_model.port="${ports[judge]}")
serve_critic+=(trainer.ppo.port="${ports[critic]}" trainer.ppo.combine_rm_and_critic_server=false)
serve_judge+=(inference.port="${ports[judge]}")
# begin NAME WHO: of the run NAME
begin() {
  case $2 in
    actor) "${ppo[@]}" exp_manager.explicit_log_dir="$1" >>"$1.log" 2>&1 & ;;
    critic) "${serve_critic[@]}" exp_manager.explicit_log_dir="$1_critic" >>"$1_critic.log" 2>&1 & ;;
    judge) "${serve_judge[@]}" >>"$1_judge.log" 2>&1 & ;;
  esac
  pids[$2]=$!
}
begin_all() { for who in judge critic actor; do begin "$1" $who; done; }
end_well() { # name
  wait "${pids[actor]}" || fail "the run $1 ends with $?: $(tail -n 20 "$1.log")"
  for who in critic judge; do
    kill -INT "${pids[$who]}"
    wait "${pids[$who]}" || fail "the $who of $1 ends with $?: $(tail -n 20 "$1_$who.log")"
  done
}
sets=(actor critic judge "actor critic" "actor judge" "critic judge" "actor critic judge")

begin_all whole
end_well whole
begin_all shot
count=0
hit=()
while [ $count -lt "$kills" ] && kill -0 "${pids[actor]}" 2>/dev/null; do
  wait_for_step shot "${pids[actor]}" $(($(steps_done shot) + RANDOM % 2 + 1))
  sleep "0.0$(printf '%02d' $((RANDOM % 100)))"
  kill -0 "${pids[actor]}" 2>/dev/null || break
  for who in ${sets[RANDOM % 7]}; do
    [ $count -lt "$kills" ] || break
    kill -9 "${pids[$who]}" && count=$((count + 1)) counts[$who]=$((counts[$who] + 1))
    wait "${pids[$who]}" 2>/dev/null
    hit[${#hit[@]}]=$who
  done
  [ $((RANDOM % 3)) = 0 ] && sleep "0.$((RANDOM % 5))"
  for who in "${hit[@]}"; do begin shot "$who"; done
  hit=()
done
end_well shot
echo "$count kills in $steps steps: actor ${counts[actor]}, critic ${counts[critic]}, reward server ${counts[judge]}; $(grep -c 'resumed from' shot.log) resumes," \
  "$(grep -c 'is back after' shot.log) waits for servers, $(grep -c 'replayed .* training calls' shot_critic.log) starts of the critic that made calls again"
[ $count = "$kills" ] || fail "only $count kills: the run was over"
for who in actor critic judge; do [ "${counts[$who]}" -ge $((kills / 6)) ] || fail "$who was killed only ${counts[$who]} times"; done
same_online whole shot
same_critics whole_critic shot_critic
exit $((failures > 0))
