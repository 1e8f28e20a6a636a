#!/usr/bin/env bash
# What shells complete, in real ones: bash, and zsh and fish where they are installed. completion_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
fail() {
  echo "FAILED: line ${BASH_LINENO[1]}: $1"
  failures=$((failures + 1))
}
mkdir bin runs "a model"
ln -s "$kedge" bin/kedge
touch mine.yaml other.txt
export PATH=$PWD/bin:$PATH XDG_CACHE_HOME=$PWD/cache

expect 2 'expected the name of one shell: bash, zsh or fish$' kedge completion
expect 2 'found "bsh"; nearest: bash' kedge completion bsh
# shellcheck disable=SC1090
source <(kedge completion bash)
# in_bash WORD...: what bash offers for the last word, one line each. Words are given as bash cuts them: key = value.
in_bash() {
  COMP_WORDS=(kedge "$@") COMP_CWORD=$# COMPREPLY=()
  COMP_LINE="${COMP_WORDS[*]}"
  COMP_POINT=$((${#COMP_LINE} + 1)) # behind the last letter, so that an empty last word is told from none
  _kedge
  printf '%s\n' "${COMPREPLY[@]}"
}
# offers 'A B' WORD...: these and no others. has 'A B' WORD...: these among others.
offers() {
  local wanted=$1 found
  shift
  found=$(in_bash "$@" | sort | xargs)
  [ "$found" = "$(tr ' ' '\n' <<<"$wanted" | sort | xargs)" ] || fail "kedge $*: wanted '$wanted', found '$found'"
}
has() {
  local wanted=$1 found word
  shift
  found=$(in_bash "$@")
  for word in $wanted; do grep -qxF -- "$word" <<<"$found" || fail "kedge $*: no '$word' in '$(xargs <<<"$found")'"; done
}
has "sft rm ppo reinforce rs serve plan report completion help" ''
offers "reinforce replay report" re
offers "reward critic" serve ''
offers "critic" serve c
has "sft rm ppo reinforce rs serve" plan ''
offers "reward critic" plan serve ''
offers "check prepare pack demo" data ''
offers "hh" data prepare ''
has "sft ppo metrics serve_reward" config ''
offers "bash zsh fish" completion ''
has "serve show" help s
offers "--help --version" --
has "--step --sort --worst --help" show --
offers "reward kl length advantage order" show runs --sort ''
has "--as --model --help" data check --
offers "prompts preference" data check x --as p
has "--fork --help" reinforce --
has "--fork --help --recipe" grpo --
offers "dapo" grpo --recipe da
offers "trainer." reinforce tra
has "trainer.reinforce. trainer.precision=" reinforce trainer.
has "trainer.reinforce.max_steps= trainer.reinforce.baseline=" reinforce mine.yaml trainer.reinforce.
offers "group_mean group_mean_batch_std group_norm" reinforce trainer.reinforce.baseline = group
has "none rloo" reinforce trainer.reinforce.baseline =
offers "true false" reinforce model.data.add_bos =
offers "" reinforce model.optim.lr =
offers "inference.port=" serve reward inference.po
offers "trainer.ppo.port=" plan serve critic trainer.ppo.po
offers "" nothing ''
# Names of files where they are wanted, and only those.
has "mine.yaml runs model. trainer." reinforce ''
grep -q other.txt <<<"$(in_bash reinforce '')" && fail "a file that is no YAML is offered as a configuration"
offers "other.txt" data check o
grep -qx 'a model' <<<"$(in_bash show '')" || fail "no folder with a space in its name"
grep -qx mine.yaml <<<"$(in_bash show '')" && fail "a file is offered as a run"
offers "mine.yaml" sft model.data.train_ds.file_path = mi
offers "runs" reinforce pretrained_checkpoint.restore_from_path = r
# The table is made once, and again when the program is newer.
tables=(cache/kedge/completion-*)
[ ${#tables[@]} = 1 ] || fail "not one table: ${tables[*]}"
printf '\tw\tonly\t\t\n' >"${tables[0]}"
offers "only" ''
touch -d 2001-01-01 "${tables[0]}"
has "sft" ''

# fish tells what it would complete.
if command -v fish >/dev/null; then
  in_fish() { HOME=$PWD fish --no-config -c "$("$kedge" completion fish); complete -C \"\$argv[1]\"" -- "$1" 2>&1 | cut -f 1; }
  [ "$(in_fish 'kedge serve ' | xargs)" = "critic reward" ] || fail "fish: kedge serve: $(in_fish 'kedge serve ')"
  grep -qx 'trainer.reinforce.' <<<"$(in_fish 'kedge reinforce trainer.')" || fail "fish: no section: $(in_fish 'kedge reinforce trainer.')"
  grep -qx 'trainer.reinforce.baseline=group_mean' <<<"$(in_fish 'kedge reinforce trainer.reinforce.baseline=gr')" || fail "fish: no value"
  grep -qx 'mine.yaml' <<<"$(in_fish 'kedge reinforce ')" || fail "fish: no file: $(in_fish 'kedge reinforce ' | xargs)"
  grep -qx 'model.data.train_ds.file_path=mine.yaml' <<<"$(in_fish 'kedge sft model.data.train_ds.file_path=mi')" || fail "fish: no file behind ="
  grep -qx -- '--sort' <<<"$(in_fish 'kedge show --')" || fail "fish: no flags"
else
  echo "fish is not installed: its script was not tried"
fi
# zsh completes only at a terminal.
if command -v zsh >/dev/null; then
  "$kedge" completion zsh >_kedge
  python3 "$here/zsh_completes.py" _kedge 'kedge serve cr' 'kedge serve critic ' 'kedge reinforce trainer.rei' 'kedge reinforce trainer.reinforce.' \
    'kedge reinforce trainer.reinforce.baseline=group_n' 'kedge reinforce trainer.reinforce.baseline=group_norm ' \
    'kedge sft model.data.train_ds.file_path=min' 'kedge sft model.data.train_ds.file_path=mine.yaml ' || fail "zsh"
else
  echo "zsh is not installed: its script was not tried"
fi
[ "$failures" = 0 ] && echo "all as expected"
exit "$((failures > 0))"
