#!/usr/bin/env bash
# NeMo-Aligner's functional tests: its scripts run from the beginning to the end, with kedge in the place of its programs, on the CPU. Only what they take from
# the environment, paths outside their folder and ports are set. nemo_functional_test.sh KEDGE ASSETS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
assets=$(realpath "${KEDGE_ASSETS:-$2}" 2>/dev/null)
files=$assets/configs/nemo-aligner tokenizer=$assets/models/tinystories-656k
[ -d "$files" ] && [ -d "$tokenizer" ] || { echo "skipped: no configs/nemo-aligner or models/tinystories-656k in ${KEDGE_ASSETS:-$2}; KEDGE_ASSETS names the assets folder"; exit 77; }
mpirun=$(command -v mpirun) || { echo "skipped: no mpirun"; exit 77; }
. "$here/commands_support.sh"
fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
"$kedge" init judge --shape tiny --tokenizer "$tokenizer" --num-labels 1 --max-positions 2048 --threads 1 >/dev/null 2>&1 || fail 'no reward model'
"$kedge" init policy --shape tiny --tokenizer "$tokenizer" --max-positions 2048 --threads 1 >/dev/null 2>&1 || fail 'no policy'
policy=$PWD/policy

# What the scripts find on their PATH: programs of the same names that start kedge. `here`: what this machine is.
mkdir bin scripts results nemo nemo/examples nemo/examples/nlp nemo/examples/nlp/gpt
ln -s "$files" nemo/examples/nlp/gpt/conf
ln -s "$files/functional/test_data" scripts/test_data
here_is='trainer.accelerator=cpu trainer.precision=32 trainer.threads=1'
start="export OMP_NUM_THREADS=1; unset CUDA_VISIBLE_DEVICES; while [ \"\${1%.py}\" = \"\$1\" ]; do shift; done; name=\$(basename \"\$1\" .py); shift"
ranks="exec $mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"
printf '#!/bin/bash\necho %s\n' "$PWD/nemo" >bin/git
printf '#!/bin/bash\n%s\nexec %s "$name" "$@" %s\n' "$start" "$kedge" "$here_is" >bin/python
for program in mpirun torchrun; do printf '#!/bin/bash\n%s\n%s %s "$name" "$@" %s\n' "$start" "$ranks" "$kedge" "$here_is" >bin/$program; done
chmod +x bin/*

# run_script NAME VARIABLE=VALUE...: what it says goes to NAME.log. (Its last check is for a line of another generator.)
run_script() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  sed -E "s|/tmp/|$PWD/results/|g; s|=/results |=$PWD/results/rm |; s/_PORT=[0-9]+/_PORT=$port/; /Cleaning up communicator.*log_file/,/^fi/d" "$files/functional/$1.sh" >"scripts/$1.sh"
  env PATH="$PWD/bin:$PATH" FAST=1 PP_SIZE=1 "${@:2}" bash "scripts/$1.sh" >"$1.log" 2>&1 || fail "$1.sh ends with $?: $(tail -n 30 "$1.log")"
}
# said NAME PATTERN
said() { grep -qE "$2" "$1.log" || fail "$1.sh does not say /$2/: $(tail -n 40 "$1.log")"; }

run_script sft PRETRAINED_CHECKPOINT_NEMO_FILE="$policy" MAX_SEQ_LENGTH=512
said sft 'done: step 5 of 5'
run_script rm PRETRAINED_CHECKPOINT_NEMO_FILE="$policy"
said rm 'done: step 1 of 1'
run_script dpo DATA_DIR="$PWD/scripts/test_data" PRETRAINED_CHECKPOINT_NEMO_FILE="$policy"
said dpo 'done: step 3 of 3'
run_script reinforce ACTOR_NEMO_FILE="$policy" RM_NEMO_FILE="$PWD/judge"
said reinforce 'done: step 3 of 3'
run_script ppo ACTOR_NEMO_FILE="$policy" RM_NEMO_FILE="$PWD/judge"
said ppo 'done: step 3 of 3'
# Two ranks compute the policy together.
for name in reinforce ppo; do
  rm -r results/${name}_test
  run_script $name TP_SIZE=2 ACTOR_NEMO_FILE="$policy" RM_NEMO_FILE="$PWD/judge"
  said $name 'done: step 3 of 3'
done
# exp_manager=null keeps nothing; the critic, which has a folder, keeps what it was told to.
[ -z "$(find results/*/actor_results -type f)" ] || fail "a run without exp_manager leaves $(find results/*/actor_results)"
[ -f results/ppo_test/critic_results/run.json ] || fail "the critic leaves no folder"
exit $((failures > 0))
