#!/usr/bin/env bash
# Makes tests/golden/old_run with a program of an earlier version: a short REINFORCE run in the middle, and what became of it when that version went on.
# make_old_run.sh KEDGE OUT
set -euo pipefail
kedge=$(realpath "$1")
mkdir -p "$2" && cd "$2"
mkdir tokenizer
cat >tokenizer/tokenizer.json <<'JSON'
{"version": "1.0", "added_tokens": [{"id": 6, "content": "<eos>", "special": true, "single_word": false, "lstrip": false, "rstrip": false,
 "normalized": false}], "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2, "c": 3, "ab": 4, "\n": 5}, "merges": ["a b"]}}
JSON
echo '{"eos_token": "<eos>"}' >tokenizer/tokenizer_config.json
"$kedge" init policy --shape tiny --hidden-size 16 --num-heads 2 --num-kv-heads 1 --mlp-size 32 --max-positions 64 --tokenizer tokenizer --threads 1
rm -r tokenizer
for i in $(seq 12); do echo "{\"text\": \"$(printf 'b%.0s' $(seq $((i % 4 + 1)))) c\"}"; done >prompts.jsonl
cat >config.yaml <<'YAML'
trainer: {accelerator: cpu, precision: 32, threads: 1, reinforce: {max_epochs: 4, val_check_interval: 2}}
exp_manager: {explicit_log_dir: run, create_tensorboard_logger: false, checkpoint_callback_params: {save_top_k: 0}}
pretrained_checkpoint: {restore_from_path: policy}
reward: {sources: {letters: {kind: regex, use: count, pattern: a}}}
rollouts: {keep: all}
model:
  encoder_seq_length: 32
  global_batch_size: 8
  optim: {lr: 1e-3, sched: {name: constant}}
  data: {data_prefix: {train: [prompts.jsonl], validation: [prompts.jsonl], test: [prompts.jsonl]}}
  reinforce: {num_rollout_samples: 4, num_val_samples: 4, length_params: {max_length: 12}, sampling_params: {end_strings: []}}
YAML
"$kedge" reinforce config.yaml trainer.reinforce.max_steps=4
cp -r run whole
"$kedge" reinforce config.yaml trainer.reinforce.max_steps=8 exp_manager.explicit_log_dir=whole
grep -h '"train_rollouts/rewards"' whole/metrics.jsonl >rewards.jsonl
rm -rf whole run/log.txt run/.lock
