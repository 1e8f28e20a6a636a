#!/usr/bin/env bash
# NeMo-Aligner's own configuration files as they are: no key removed, and only paths, devices, precision, ports, lengths, batch sizes and step counts overridden.
# Each of its programs that kedge has runs two steps, alone and, where there is mpirun, on two ranks that compute every layer together.
# nemo_files_test.sh KEDGE ASSETS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
assets=$(realpath "${KEDGE_ASSETS:-$2}" 2>/dev/null)
files=$assets/configs/nemo-aligner policy=$assets/models/tinystories-656k
[ -d "$files" ] && [ -d "$policy" ] || { echo "skipped: no configs/nemo-aligner or models/tinystories-656k in ${KEDGE_ASSETS:-$2}; KEDGE_ASSETS names the assets folder"; exit 77; }
. "$here/commands_support.sh"
fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
data=$files/functional/test_data
"$kedge" init judge --shape tiny --tokenizer "$policy" --num-labels 1 --threads 1 >/dev/null 2>&1 || fail 'no judge'
here_cpu=(trainer.accelerator=cpu trainer.precision=32 trainer.devices=1 trainer.num_nodes=1)
ranks_cpu=("${here_cpu[@]}")
start=() in=alone
prompts="model.data.data_prefix={train: [$data/synthetic-123.jsonl], validation: [$data/synthetic-123.jsonl], test: [$data/synthetic-123.jsonl]}"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# stop LOG: rank 0 says there how to stop a server, and ends the others.
stop() { kill -INT "$(sed -nE 's/.*kill -SIGINT ([0-9]+)/\1/p' "$1")"; }
# await LOG: until a server is ready
await() {
  for _ in $(seq 300); do
    grep -q 'ready' "$1" && return
    sleep 0.1
  done
  fail "not ready: $(tail -n 5 "$1")"
}

for i in $(seq 12); do echo "{\"input\": \"Tom has $i cats.\", \"output\": \"They like to play.\"}"; done >rows.jsonl
for i in $(seq 6); do echo "{\"text\": \"Tom has $i cats. They like to play.\"}" && echo "{\"text\": \"Tom has $i cats. cats cats\"}"; done >pairs.jsonl
# DPO's pairs as single responses
python3 - "$data/dummy-dpo.jsonl" >marked.jsonl <<'PY'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    for preference in ("chosen", "rejected"):
        print(json.dumps({"prompt": row["prompt"], "response": row[preference + "_response"], "preference": preference}))
PY

run_all() {
  mkdir $in
  rm -f judge.log critic.log
  expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" sft "$files/gpt_sft.yaml" "${ranks_cpu[@]}" model.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/sft \
    model.data.train_ds.file_path=rows.jsonl model.data.validation_ds.file_path=rows.jsonl model.data.train_ds.max_seq_length=64 model.data.train_ds.global_batch_size=4 \
    model.data.train_ds.micro_batch_size=2 model.encoder_seq_length=64 trainer.sft.max_steps=2 trainer.sft.val_check_interval=1

  expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" rm "$files/training_rm.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/rm \
    "model.data.data_prefix={train: [pairs.jsonl], validation: [pairs.jsonl], test: [pairs.jsonl]}" model.encoder_seq_length=64 model.global_batch_size=2 \
    model.micro_batch_size=1 trainer.rm.max_steps=2 trainer.rm.val_check_interval=1 trainer.rm.limit_val_batches=1

  expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" train_gpt_dpo "$files/gpt_dpo.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/dpo \
    "model.data.data_prefix={train: [$data/dummy-dpo.jsonl], validation: [$data/dummy-dpo.jsonl], test: [$data/dummy-dpo.jsonl]}" model.encoder_seq_length=128 \
    model.global_batch_size=4 trainer.dpo.max_steps=2 trainer.dpo.val_check_interval=1 trainer.dpo.save_interval=1 trainer.dpo.limit_val_batches=2
  expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" train_gpt_kto "$files/gpt_kto.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/kto \
    "model.data.data_prefix={train: [marked.jsonl], validation: [marked.jsonl], test: [marked.jsonl]}" model.encoder_seq_length=128 model.global_batch_size=4 \
    trainer.kto.max_steps=2 trainer.kto.val_check_interval=1 trainer.kto.save_interval=1 trainer.kto.limit_val_batches=2

  port=$(free_port)
  "${start[@]}" "$kedge" serve reward "$files/inference_rm.yaml" "${ranks_cpu[@]}" rm_model_file=judge inference.port="$port" >judge.log 2>&1 &
  judge=$!
  await judge.log
  expect 0 'fits' "$kedge" plan reinforce "$files/gpt_reinforce_actor.yaml" "${here_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" "$prompts" model.encoder_seq_length=64 \
    model.reinforce.num_rollout_samples=4 model.global_batch_size=4
  for name in reinforce rs; do
    expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" train_gpt_${name}_actor "$files/gpt_${name}_actor.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/$name \
      "$prompts" model.encoder_seq_length=64 model.global_batch_size=4 model.micro_batch_size=1 model.$name.num_rollout_samples=4 model.$name.length_params.max_length=8 \
      trainer.$name.max_steps=2 trainer.$name.val_check_interval=1 remote_rm.reward_model.port="$port"
  done
  stop judge.log
  wait $judge || fail "the reward server ends with $?"

  port=$(free_port)
  "${start[@]}" "$kedge" serve critic "$files/gpt_ppo_critic.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path=judge exp_manager.explicit_log_dir=$in/critic trainer.ppo.port="$port" \
    model.encoder_seq_length=64 model.global_batch_size=4 model.micro_batch_size=1 >critic.log 2>&1 &
  critic=$!
  await critic.log
  expect 0 'done: step 2 of 2' "${start[@]}" "$kedge" ppo "$files/gpt_ppo_actor.yaml" "${ranks_cpu[@]}" pretrained_checkpoint.restore_from_path="$policy" exp_manager.explicit_log_dir=$in/ppo \
    "$prompts" model.encoder_seq_length=64 model.global_batch_size=4 model.micro_batch_size=1 model.ppo.num_rollout_samples=4 model.ppo.length_params.max_length=8 \
    trainer.ppo.max_steps=2 trainer.ppo.val_check_interval=1 remote_critic_rm.critic.port="$port"
  stop critic.log
  wait $critic || fail "the critic ends with $?: $(tail -n 5 critic.log)"
}
run_all
if mpirun=$(command -v mpirun); then
  start=("$mpirun" --allow-run-as-root --oversubscribe --bind-to none -n 2) in=split
  ranks_cpu=("${here_cpu[@]/devices=1/devices=2}" model.tensor_model_parallel_size=2)
  OMP_NUM_THREADS=1 run_all
fi
exit $((failures > 0))
