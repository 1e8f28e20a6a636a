# shellcheck shell=bash
# Sourced by the tests of launch/, after train_support.sh: models and prompts as the scripts are told of them, and the keys of short runs.
. "$cli/online_support.sh"
. "$cli/ppo_support.sh"
export KEDGE=$kedge KEDGE_POLICY=lm KEDGE_REWARD_MODEL=judge KEDGE_PROMPTS=prompts.jsonl KEDGE_VAL_PROMPTS=val_prompts.jsonl
short=("${common[@]}" model.encoder_seq_length=64 model.optim.lr=1e-3 model.optim.sched.name=constant)
for_reinforce=("${short[@]}" "${for_reinforce[@]}") for_rs=("${short[@]}" "${for_rs[@]}") for_ppo=("${short[@]}" "${for_ppo[@]}")
# Of serve_critic and serve_judge only the keys that the scripts do not give.
for_critic=(--critic) for_reward=(--reward)
for word in "${serve_critic[@]}"; do [[ $word == *=* && $word != pretrained_checkpoint.* ]] && for_critic+=("$word"); done
for word in "${serve_judge[@]}"; do [[ $word == *=* && $word != rm_model_file=* ]] && for_reward+=("$word"); done

# pid_of RUN critic|reward: the server's process.
pid_of() { sed -nE 's/.*stop it with: kill -SIGINT ([0-9]+)$/\1/p' "$1"/logs/"$2"*.log | tail -n 1; }
# check_ended RUN: no process has a part of it in its command line. (Not that of this grep either.)
left_behind() { grep -lsa "$folder/$1[/]" /proc/[0-9]*/cmdline; }
check_ended() {
  local file
  for file in $(left_behind "$1"); do fail "of the run $1 there is left: $(tr '\0' ' ' <"$file")"; done
}
# same_launched RUN OTHER: as same_online, but for the servers' addresses, which are part of what a record is known by.
same_launched() {
  local file
  same_runs "$1/actor" "$2/actor"
  for file in "$1"/actor/rollouts/*; do
    cmp <(sed -E 's/"fingerprint": ?"[^"]*"//' "$file") <(sed -E 's/"fingerprint": ?"[^"]*"//' "$2/actor/rollouts/${file##*/}") || fail "$file differs in $2"
  done
}
