#!/usr/bin/env bash
# Aligns a chat model to solve the maths problems of GSM8K: REINFORCE with the rule that right is 1 and wrong 0, then pass@1 and pass@4.
#
#   examples/gsm8k/run.sh MODEL DATA OUT
#
# MODEL  a Hugging Face folder with a chat template (Qwen2.5-0.5B-Instruct, say)
# DATA   a folder with GSM8K's train.jsonl and test.jsonl: lines of {"question": ..., "answer": "... #### 72"}
# OUT    a folder for everything that is made; started again, a run resumes where it stopped
#
# KEDGE=PROGRAM            the program (default: kedge)
# WARM_UP=1                first train on the training solutions (for a model that does not answer such questions yet)
# SFT_ARGS, ARGS           key=value for the warm-up and for the run itself: ARGS="trainer.reinforce.max_steps=50"
# EVAL_ARGS                flags of the last command (default: --limit 256)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kedge=${KEDGE:-kedge}
die() { echo "run.sh: $*" >&2; exit 2; }
[ $# = 3 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
model=$1 data=$2 out=$3
command -v "$kedge" >/dev/null || die "no program '$kedge': put kedge on the PATH, or name it with KEDGE=PROGRAM"
[ -e "$model/config.json" ] || die "MODEL: no config.json in '$model', so it is not a model folder"
[ -e "$model/chat_template.jinja" ] || grep -qs '"chat_template"' "$model/tokenizer_config.json" ||
  die "MODEL: '$model' has no chat template (chat_template.jinja, or in tokenizer_config.json); take an instruct model"
for name in train test; do
  [ -s "$data/$name.jsonl" ] || die "DATA: no '$data/$name.jsonl'; GSM8K's two files are needed"
done
mkdir -p "$out/data"

# A row becomes a conversation of one question; the solution stays in the row, for the rule.
ask='\\n\\nThink step by step. End with the number that is the answer: #### NUMBER'
text='"(([^"\\]|\\.)*)"'
for name in train test; do
  sed -E "s/^\{\"question\": $text, \"answer\": /{\"messages\": [{\"role\": \"user\", \"content\": \"\1$ask\"}], \"answer\": /" \
    "$data/$name.jsonl" >"$out/data/$name.jsonl"
  # The same with the solution as an answer, without the calculator's notes <<48/2=24>>.
  sed -E "s/^\{\"question\": $text, \"answer\": $text\}/{\"messages\": [{\"role\": \"user\", \"content\": \"\1$ask\"}, {\"role\": \"assistant\", \"content\": \"\3\"}]}/; s/<<[^>]*>>//g" \
    "$data/$name.jsonl" >"$out/data/${name}_solved.jsonl"
  for made in $name ${name}_solved; do
    other=$(grep -vcm 1 '^{"messages": ' "$out/data/$made.jsonl" || true)
    [ "$other" = 0 ] || die "DATA: $data/$name.jsonl has a line that is not {\"question\": ..., \"answer\": ...}: $(grep -vm 1 '^{"messages": ' "$out/data/$made.jsonl" | cut -c 1-200)"
  done
done

start=$model
if [ "${WARM_UP:-0}" = 1 ]; then
  # shellcheck disable=SC2086
  "$kedge" sft "$here/sft.yaml" model.restore_from_path="$model" model.data.train_ds.file_path="$out/data/train_solved.jsonl" \
    model.data.validation_ds.file_path="$out/data/test_solved.jsonl" exp_manager.explicit_log_dir="$out/sft" ${SFT_ARGS:-}
  start=$out/sft/model
fi

# shellcheck disable=SC2086
"$kedge" reinforce "$here/reinforce.yaml" pretrained_checkpoint.restore_from_path="$start" \
  "model.data.data_prefix={train: ['$out/data/train.jsonl'], validation: ['$out/data/test.jsonl'], test: ['$out/data/test.jsonl']}" \
  exp_manager.explicit_log_dir="$out/reinforce" ${ARGS:-}

# The start, every checkpoint, and how often one of four answers is right.
# shellcheck disable=SC2086
"$kedge" eval "$out/reinforce" --samples 4 --pass 1 --pass-k 1,4 --csv "$out/eval.csv" ${EVAL_ARGS:---limit 256}

cat <<NEXT

Look at it:
  $kedge inspect $out/reinforce            did it work?
  $kedge show $out/reinforce --worst       wrong answers of the last step
  $kedge export $out/reinforce OUT --best  the best checkpoint, for transformers and others
NEXT
