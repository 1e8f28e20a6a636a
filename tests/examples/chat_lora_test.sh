#!/usr/bin/env bash
# examples/chat_lora at the scale of a test: its own configurations and script, a random model, a few made-up conversations. chat_lora_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
example=$(realpath "$here/../../examples/chat_lora")
. "$here/../cli/commands_support.sh"
. "$here/chat_support.sh"
make_chat_model lm
for i in $(seq 40); do
  echo "{\"messages\": [{\"role\": \"user\", \"content\": \"Say $i\"}, {\"role\": \"assistant\", \"content\": \"$i, gladly\"}]}"
done >chats.jsonl
for i in $(seq 40); do
  echo "{\"prompt\": [{\"role\": \"user\", \"content\": \"Say $i\"}], \"chosen\": {\"role\": \"assistant\", \"content\": \"$i, gladly\"}, \"rejected\": {\"role\": \"assistant\", \"content\": \"no\"}}"
done >pairs.jsonl

export KEDGE=$kedge
ARGS='trainer.accelerator=cpu trainer.threads=1 exp_manager.create_tensorboard_logger=false model.encoder_seq_length=128'
SFT_ARGS='trainer.sft.max_steps=4 trainer.sft.val_check_interval=2 model.data.validation_ds.global_batch_size=2 model.data.validation_ds.micro_batch_size=2'
RM_ARGS='trainer.rm.max_steps=4 trainer.rm.val_check_interval=2 model.global_batch_size=2 model.micro_batch_size=2'
REINFORCE_ARGS='trainer.reinforce.max_steps=3 trainer.reinforce.val_check_interval=2 model.global_batch_size=16 model.reinforce.num_rollout_samples=4
  model.reinforce.num_val_samples=2 model.reinforce.length_params.max_length=12 trainer.reinforce.unfinished=keep'
export ARGS SFT_ARGS RM_ARGS REINFORCE_ARGS
"$example/run.sh" lm chats.jsonl pairs.jsonl out >run.log 2>&1 || { cat run.log; fail 'run.sh'; }
for run in sft rm reinforce; do
  [ -s out/$run/model/adapter_model.safetensors ] || fail "no adapters in out/$run/model"
  [ -e out/$run/model/model.safetensors ] && fail "out/$run/model holds the network too"
done
for folder in imitating judge aligned; do
  for file in config.json model.safetensors tokenizer.json chat_template.jinja; do
    [ -s out/$folder/$file ] || fail "no out/$folder/$file"
  done
  cmp -s lm/model.safetensors out/$folder/model.safetensors && fail "out/$folder is the model that it began with"
done
cmp -s out/imitating/model.safetensors out/aligned/model.safetensors && fail 'REINFORCE changed nothing'
grep -q '"train_rollouts/rewards/judge": ' out/reinforce/metrics.jsonl || fail 'no rewards of the judge'
grep -q 'kedge generate --model out/aligned --chat' run.log || fail 'no next commands'
expect 0 '"reward": ' "$kedge" score --model out/judge --input chats.jsonl --threads 1
said=$(printf 'Say 4\n' | "$kedge" generate --model out/aligned --chat --max-new-tokens 6 --threads 1 2>chat.err) || { cat chat.err; fail 'kedge generate --chat'; }
[ -n "$said" ] || fail 'the chat said nothing'
# A second start finds everything done.
"$example/run.sh" lm chats.jsonl pairs.jsonl out >again.log 2>&1 || { cat again.log; fail 'run.sh a second time'; }
[ "$(grep -c 'the run is complete' again.log)" = 3 ] || { cat again.log; fail 'complete runs were not seen as such'; }

# What is wrong is named
mkdir plain && cp lm/*.json plain
expect 2 'MODEL CHATS PAIRS OUT' "$example/run.sh" lm chats.jsonl
expect 2 "MODEL: no config.json in 'nowhere'" "$example/run.sh" nowhere chats.jsonl pairs.jsonl out
expect 2 "MODEL: 'plain' has no chat template" "$example/run.sh" plain chats.jsonl pairs.jsonl out
expect 2 "CHATS: no file 'nothing.jsonl'" "$example/run.sh" lm nothing.jsonl pairs.jsonl out
expect 2 "PAIRS: no file 'nothing.jsonl'" "$example/run.sh" lm chats.jsonl nothing.jsonl out
head -n 9 chats.jsonl >few.jsonl
expect 2 "CHATS: 'few.jsonl' has fewer than 20" "$example/run.sh" lm few.jsonl pairs.jsonl out
echo '[]' >list.json
expect 2 "CHATS: 'list.json' is not JSON Lines" "$example/run.sh" lm list.json pairs.jsonl out
echo '{"prompt": "Q", "chosen": "A"}' >broken.jsonl
expect 2 'broken.jsonl:1' "$example/run.sh" lm chats.jsonl broken.jsonl broken
[ -e broken/sft ] && fail 'something was trained before all data was read'

exit $((failures > 0))
