#!/usr/bin/env bash
# DPO and KTO on one, two and three ranks: the same batches, losses within 1e-5; whatever is sharded, the same bits. preference_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/preference_support.sh"
on() { # ranks, folder, command, setting...
  local ranks=$1 folder=$2 name=$3
  local -n words=$3
  shift 3
  "${mpirun[@]}" -n "$ranks" "${words[@]}" model.global_batch_size=6 model.micro_batch_size=1 trainer.$name.max_epochs=50 trainer.$name.max_steps=20 \
    trainer.$name.val_check_interval=10 model.optim.sched.name=constant exp_manager.explicit_log_dir="$folder" "$@"
}
losses() { grep -oE '"(train|validation)/(loss|rewards/margins)": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
for name in dpo kto; do
  for ranks in 1 2 3; do expect 0 'done: step 20 of 20' on $ranks ${name}_$ranks $name model.sharding=none; done
  close ${name}_1 ${name}_2 44
  close ${name}_1 ${name}_3 44
  for kind in optimizer gradients all; do
    expect 0 'done: step 20 of 20' on 2 ${name}_$kind $name model.sharding=$kind
    cmp ${name}_2/model/model.safetensors ${name}_$kind/model/model.safetensors || fail "$name: $kind gives other weights"
    diff <(losses ${name}_2) <(losses ${name}_$kind) || fail "$name: $kind gives other numbers"
  done
  # A copy of the reference for every batch, which is sharded too, and values on disk
  for kept in none disk; do
    expect 0 'done: step 20 of 20' on 2 ${name}_$kept $name model.sharding=all model.$name.reference_cache=$kept
    cmp ${name}_2/model/model.safetensors ${name}_$kept/model/model.safetensors || fail "$name: reference_cache=$kept gives other weights"
  done
  # Begun on two ranks, resumed on three
  expect 0 'done: step 10' on 2 ${name}_begun $name trainer.$name.max_steps=10
  expect 0 'ranks: 2 -> 3' on 3 ${name}_begun $name
  close ${name}_1 ${name}_begun 44
done
exit $((failures > 0))
