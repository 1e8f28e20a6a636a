#!/usr/bin/env bash
# Runs on ranks that compute every layer together (tensor parallelism): SFT and REINFORCE have the losses of one process within 1e-5, also where
# such ranks are sharded or divide the tokens; checkpoints are resumed in every other layout. tensor_ranks_test.sh KEDGE MPIRUN...;
# KEDGE_TEST_PARTS=online runs a part of it.
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"

on() { # ranks, folder, command, setting...
  local ranks=$1 folder=$2
  local -n words=$3
  shift 3
  if [ "$ranks" = 1 ]; then
    "${words[@]}" exp_manager.explicit_log_dir="$folder" "$@"
  else
    "${mpirun[@]}" -n "$ranks" "${words[@]}" trainer.transport="${KEDGE_TEST_TRANSPORT:-auto}" exp_manager.explicit_log_dir="$folder" "$@"
  fi
}
split=model.tensor_model_parallel_size=2
slices=model.sequence_parallel=true

train=("${sft[@]}" model.data.train_ds.global_batch_size=12 model.data.train_ds.micro_batch_size=1 trainer.sft.max_epochs=50 trainer.sft.max_steps=20
  trainer.sft.val_check_interval=10 trainer.sft.save_interval=10 model.optim.lr=1e-3 model.optim.sched.name=constant)

supervised() {
  expect 0 'done: step 20 of 20' on 1 sft_alone train
  expect 0 'done: step 20 of 20' on 2 sft_split train $split
  close sft_alone sft_split 22
  expect 0 'done: step 20 of 20' on 2 sft_again train $split
  cmp sft_split/model/model.safetensors sft_again/model/model.safetensors || fail 'a second run has other weights'
  for kind in none all; do
    expect 0 'done: step 20 of 20' on 4 sft_split_$kind train $split model.sharding=$kind
    close sft_alone sft_split_$kind 22
  done
  cmp sft_split_none/model/model.safetensors sft_split_all/model/model.safetensors || fail 'another sharding has other weights'

  # Each rank with its own tokens where norms are computed. The first step has the bits of ranks with all tokens; after it weights of norms
  # may differ by roundings. One rank has all tokens anyway.
  expect 0 'done: step 20 of 20' on 2 sft_slices train $split $slices
  close sft_split sft_slices 22
  [ "$(losses sft_slices | head -1)" = "$(losses sft_split | head -1)" ] || fail 'the first loss differs where ranks divide the tokens'
  expect 0 'done: step 20 of 20' on 4 sft_slices_all train $split $slices model.sharding=all model.activations_checkpoint_granularity=full
  close sft_split_all sft_slices_all 22
  expect 0 'done: step 2 of 2' on 1 alone_slices train $slices trainer.sft.max_steps=2
  [ "$(losses alone_slices | head -1)" = "$(losses sft_alone | head -1)" ] || fail 'one rank alone has another loss'
  activations() { "$kedge" plan "${train[@]:1}" --no-time --json --mesh 1x2 $split "$@" | grep -oE '"activations": *[0-9]+' | head -1 | grep -oE '[0-9]+'; }
  [ "$(activations $slices)" -lt "$(activations)" ] || fail "planned activations: $(activations $slices) with divided tokens, $(activations) without"

  # Adapters; the model's folder is that of the first rank.
  lora=(model.peft.peft_scheme=lora model.peft.lora_tuning.target_modules='[all]' model.peft.lora_tuning.adapter_dropout=0.1)
  expect 0 'done: step 20 of 20' on 1 lora_alone train "${lora[@]}"
  expect 0 'done: step 20 of 20' on 2 lora_split train $split "${lora[@]}"
  close lora_alone lora_split 22
  # Norms are frozen, so nothing differs.
  expect 0 'done: step 20 of 20' on 2 lora_slices train $split $slices "${lora[@]}"
  cmp lora_split/model/adapter_model.safetensors lora_slices/model/adapter_model.safetensors || fail 'adapters differ where ranks divide the tokens'

  # Begun in one layout, resumed in the others.
  expect 0 'done: step 10' on 2 begun train $split trainer.sft.max_steps=10
  expect 0 'done: step 10' on 1 begun_alone train trainer.sft.max_steps=10
  cp -r begun to_one && expect 0 'resumed from to_one.* at step 10' on 1 to_one train
  close sft_alone to_one 22
  cp -r begun to_shards && expect 0 'resumed from to_shards.* at step 10' on 2 to_shards train model.sharding=all
  close sft_alone to_shards 22
  cp -r begun to_both && expect 0 'resumed from to_both.* at step 10' on 4 to_both train $split model.sharding=optimizer
  close sft_alone to_both 22
  cp -r begun to_same && expect 0 'resumed from to_same.* at step 10' on 2 to_same train $split
  cmp sft_split/model/model.safetensors to_same/model/model.safetensors || fail 'resumed in the same layout, it ends with other weights'
  cp -r begun to_slices && expect 0 'resumed from to_slices.* at step 10' on 2 to_slices train $split $slices
  close sft_split to_slices 22
  cp -r begun_alone to_split && expect 0 'resumed from to_split.* at step 10' on 2 to_split train $split
  close sft_alone to_split 22
  cp -r lora_split lora_resumed && rm -r lora_resumed/checkpoints/*step=20-* && expect 0 'resumed from lora_resumed.* at step 10' on 1 lora_resumed train "${lora[@]}"
  close lora_alone lora_resumed 22
}

online() {
  # Online: the responses' log-probabilities have the bits of training, and one process computes the recorded steps again. On a GPU the bits of a
  # product depend on the number of rows: there they are as close as roundings of fp32 are.
  gaps() { grep -oE '"train_rollouts/logprob_gap_max": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
  agree() { # folder
    gaps "$1" | awk -v most="${KEDGE_TEST_GPU:+1e-5}" '$1 <= most + 0 { ++n } END { exit n != 20 }' || fail "generation and training of $1 differ: $(gaps "$1" | sort | uniq -c)"
  }
  rewarded=("${reinforce[@]}" "${rule[@]}" model.optim.lr=3e-4)
  expect 0 'done: step 20 of 20' on 2 online_split rewarded $split
  agree online_split
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect online_split
  replays online_split
  expect 0 'done: step 20 of 20' on 2 online_slices rewarded $split $slices
  agree online_slices
  replays online_slices
  expect 0 'done: step 20 of 20' on 4 online_both rewarded $split model.sharding=all
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect online_both
  replays online_both

  # Generation in another layout: the responses of the run without resharding, as recorded, give its losses. The weights move before every
  # step, and on the CPU training computes the log-probabilities itself.
  sharded=("${rewarded[@]}" model.sharding=all)
  expect 0 'done: step 20 of 20' on 2 as_trained sharded
  expect 0 'done: step 20 of 20' on 2 resharded sharded model.generation.tensor_parallel_size=2
  close as_trained resharded 40
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect resharded
  replays resharded
  expect 0 'done: step 20 of 20' on 4 both_resharded rewarded $split model.sharding=all model.generation.tensor_parallel_size=4
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect both_resharded
  replays both_resharded
  expect 0 'done: step 20 of 20' on 2 back rewarded $split model.generation.tensor_parallel_size=1
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect back
  replays back
  expect 0 'resharded weights' "$kedge" plan "${sharded[@]:1}" --no-time --mesh 1x2 model.generation.tensor_parallel_size=2
}

refused() {
  expect 2 'model.generation.tensor_parallel_size: 2 ranks do not divide the 3 ranks of the job' on 3 wrong rewarded model.generation.tensor_parallel_size=2
  expect 2 'use_flask: ranks that generate together' on 2 wrong rewarded model.generation.tensor_parallel_size=2 trainer.reinforce.batch_iterator.use_flask=true
  expect 2 'model.tensor_model_parallel_size: 2 ranks do not divide the 3 ranks of the job' on 3 wrong train $split
  expect 2 'model.tensor_model_parallel_size: 3 ranks do not divide' on 3 wrong train model.tensor_model_parallel_size=3
  expect 2 'model.tensor_model_parallel_size: 2 ranks do not divide the 1 rank of the job; mpirun' on 1 wrong train $split
  expect 2 'model.pipeline_model_parallel_size: .*tensor_model_parallel_size' on 1 wrong train model.pipeline_model_parallel_size=2
}
for part in ${KEDGE_TEST_PARTS:-supervised online refused}; do $part; done
exit $((failures > 0))
