#!/usr/bin/env bash
# The example with a reward in C++, over a random model of a few letters: killed and resumed it ends with the same bits. custom_reward_test.sh KEDGE CUSTOM_REWARD
set -uo pipefail
here=$(realpath "$(dirname "$0")")
custom_reward=$(realpath "$2")
. "$here/../cli/commands_support.sh"
make_letters letters
"$kedge" init lm --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
for i in $(seq 8); do echo "{\"text\": \"$(printf 'b%.0s' $(seq $i)) c\"}"; done >prompts.jsonl
small=(model.encoder_seq_length=32 model.reinforce.num_rollout_samples=4 model.global_batch_size=16 trainer.reinforce.max_steps=60 trainer.reinforce.max_epochs=100 trainer.threads=1
  trainer.reinforce.unfinished=keep trainer.reinforce.save_interval=1)

expect 0 'done: step 60 of 60' "$custom_reward" lm prompts.jsonl whole "${small[@]}"
[ "$(grep -c '"train_rollouts/rewards": ' whole/metrics.jsonl)" = 60 ] || { echo 'FAILED: not the metrics of sixty steps'; failures=$((failures + 1)); }
expect 0 '"response": ' "$kedge" generate --model whole/model --text 'bb' --max-new-tokens 3 --threads 1

# Killed as soon as it has a checkpoint of its third step, or of one soon after it.
"$custom_reward" lm prompts.jsonl run "${small[@]}" >killed.txt 2>&1 &
pid=$!
for _ in $(seq 6000); do
  compgen -G 'run/checkpoints/*step=[3-9]*' >/dev/null && break
  sleep 0.002
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
code=$?
[ $code = 137 ] || { echo "FAILED: it was not killed, but ended with $code"; cat killed.txt; failures=$((failures + 1)); }
expect 0 'resumed from run/checkpoints/' "$custom_reward" lm prompts.jsonl run "${small[@]}"
cmp whole/model/model.safetensors run/model/model.safetensors || { echo 'FAILED: the resumed run ended with other weights'; failures=$((failures + 1)); }
expect 0 'replays' "$kedge" replay run --step 5
expect 0 'commas' "$kedge" inspect run

expect 2 'custom_reward: expected a model folder, a file of prompts and a folder for the run' "$custom_reward" lm
expect 2 'custom_reward: .*num_rolout_samples' "$custom_reward" lm prompts.jsonl out model.reinforce.num_rolout_samples=4
expect 2 'reward.sources.mine.kind: custom is for a program' "$kedge" reinforce pretrained_checkpoint.restore_from_path=lm \
  'model.data.data_prefix={train: [prompts.jsonl], validation: [prompts.jsonl], test: [prompts.jsonl]}' reward.sources.mine.kind=custom exp_manager.explicit_log_dir=none trainer.reinforce.val_check_interval=0 "${small[@]}"

exit $((failures > 0))
