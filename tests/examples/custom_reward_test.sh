#!/usr/bin/env bash
# The example with a reward in C++, over a random model of a few letters. custom_reward_test.sh KEDGE CUSTOM_REWARD
set -uo pipefail
here=$(realpath "$(dirname "$0")")
custom_reward=$(realpath "$2")
. "$here/../cli/commands_support.sh"
make_letters letters
"$kedge" init lm --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
for i in $(seq 8); do echo "{\"text\": \"$(printf 'b%.0s' $(seq $i)) c\"}"; done >prompts.jsonl
small=(model.encoder_seq_length=32 model.reinforce.num_rollout_samples=4 model.global_batch_size=16 trainer.reinforce.max_steps=2 trainer.reinforce.unfinished=keep)

expect 0 '' "$custom_reward" lm prompts.jsonl out "${small[@]}"
[ "$(grep -c '"train_rollouts/rewards": ' out/metrics.jsonl)" = 2 ] || { echo 'FAILED: not the numbers of two steps'; failures=$((failures + 1)); }
expect 0 '"response": ' "$kedge" generate --model out/model --text 'bb' --max-new-tokens 3 --threads 1
expect 2 'custom_reward: wants a model folder, a file of prompts and a folder for the result' "$custom_reward" lm
expect 2 'custom_reward: .*num_rolout_samples' "$custom_reward" lm prompts.jsonl out model.reinforce.num_rolout_samples=4

exit $((failures > 0))
