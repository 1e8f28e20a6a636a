#!/usr/bin/env bash
# A chat model aligned with adapters (LoRA): SFT on conversations, a reward model from pairs, REINFORCE, and one merged model at the end.
#
#   examples/chat_lora/run.sh MODEL CHATS PAIRS OUT
#
# MODEL  a Hugging Face folder with a chat template
# CHATS  conversations to imitate:  {"messages": [{"role": "user", "content": ...}, {"role": "assistant", "content": ...}]}
# PAIRS  better and worse replies:  {"prompt": [{"role": "user", ...}], "chosen": {"role": "assistant", ...}, "rejected": {...}}
#        (their prompts are also what REINFORCE asks; other layouts that work: docs/data.md)
# OUT    a folder for everything that is made; started again, a run resumes where it stopped
#
# KEDGE=PROGRAM                      the program (default: kedge)
# ARGS                               key=value for all three trainings: ARGS="trainer.accelerator=cpu"
# SFT_ARGS, RM_ARGS, REINFORCE_ARGS  for one of them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kedge=${KEDGE:-kedge}
die() { echo "run.sh: $*" >&2; exit 2; }
[ $# = 4 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
model=$1 chats=$2 pairs=$3 out=$4
command -v "$kedge" >/dev/null || die "no program '$kedge': put kedge on the PATH, or name it with KEDGE=PROGRAM"
[ -e "$model/config.json" ] || die "MODEL: no config.json in '$model', so it is not a model folder"
[ -e "$model/chat_template.jinja" ] || grep -qs '"chat_template"' "$model/tokenizer_config.json" ||
  die "MODEL: '$model' has no chat template (chat_template.jinja, or in tokenizer_config.json); take a chat model"
[ -s "$chats" ] || die "CHATS: no file '$chats'"
[ -s "$pairs" ] || die "PAIRS: no file '$pairs'"
mkdir -p "$out/data"
# Every twentieth conversation is held out, to see whether imitating goes well.
[ "$(head -c 1 "$chats")" = '{' ] || die "CHATS: '$chats' is not JSON Lines (an object a line)"
awk 'NR % 20 != 0' "$chats" >"$out/data/chats.jsonl"
awk 'NR % 20 == 0' "$chats" >"$out/data/held_out.jsonl"
[ -s "$out/data/held_out.jsonl" ] || die "CHATS: '$chats' has fewer than 20 conversations"

# shellcheck disable=SC2206
sft=("$here/sft.yaml" model.data.train_ds.file_path="$out/data/chats.jsonl" model.data.validation_ds.file_path="$out/data/held_out.jsonl"
  exp_manager.explicit_log_dir="$out/sft" ${ARGS:-} ${SFT_ARGS:-})
# shellcheck disable=SC2206
rm=("$here/rm.yaml" "model.data.data_prefix=['$pairs']" exp_manager.explicit_log_dir="$out/rm" ${ARGS:-} ${RM_ARGS:-})
# What it will take. All data is read for it, so that a broken row is named before anything is trained.
"$kedge" plan sft "${sft[@]}" model.restore_from_path="$model" --no-time
"$kedge" plan rm "${rm[@]}" pretrained_checkpoint.restore_from_path="$model" --no-time

# merge RUN FOLDER: the run's adapters added to the network they were trained on; what the next stage starts from.
merge() {
  [ -e "$2/config.json" ] || "$kedge" export "$1" "$2" --merge
}
"$kedge" sft "${sft[@]}" model.restore_from_path="$model"
merge "$out/sft" "$out/imitating"
"$kedge" rm "${rm[@]}" pretrained_checkpoint.restore_from_path="$out/imitating"
merge "$out/rm" "$out/judge"
# shellcheck disable=SC2086
"$kedge" reinforce "$here/reinforce.yaml" pretrained_checkpoint.restore_from_path="$out/imitating" "model.data.data_prefix=['$pairs']" \
  reward.sources.judge.folder="$out/judge" exp_manager.explicit_log_dir="$out/reinforce" ${ARGS:-} ${REINFORCE_ARGS:-}
merge "$out/reinforce" "$out/aligned"

cat <<NEXT

The aligned model is $out/aligned, a Hugging Face folder. Talk to it, and look at how it came to be:
  $kedge generate --model $out/aligned --chat
  $kedge eval $out/reinforce               every checkpoint beside the start
  $kedge show $out/reinforce --worst       the replies that the reward model likes least
  $kedge inspect $out/reinforce            did it work?
NEXT
