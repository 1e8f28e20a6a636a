#!/usr/bin/env bash
# One run on one, two and three ranks: the same batches, and numbers equal up to the order of sums. train_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
relative=0
on() { # ranks, folder, setting...
  local ranks=$1 folder=$2
  shift 2
  "${mpirun[@]}" -n "$ranks" "${sft[@]}" model.data.train_ds.global_batch_size=6 model.data.train_ds.micro_batch_size=1 trainer.sft.max_epochs=5 \
    trainer.sft.val_check_interval=10 model.optim.lr=1e-3 model.optim.sched.name=constant exp_manager.explicit_log_dir="$folder" "$@"
}

expect 0 'done: step 50 of 50' on 1 one
expect 0 'done: step 50 of 50' on 2 two
expect 0 'done: step 50 of 50' on 3 three
expect 0 'done: step 50 of 50' on 2 two_whole_moments model.optim.name=adamw
close one two 55
close one three 55
cmp two/model/model.safetensors two_whole_moments/model/model.safetensors || fail 'shared moments give other weights'

# Begun on two ranks, resumed on one and on three
expect 0 'stopped \(time limit\)|done: step 20' on 2 begun trainer.sft.max_steps=20
cp -r begun on_one
cp -r begun on_three
expect 0 'resumed from on_one.* at step 20' on 1 on_one
expect 0 'ranks: 2 -> 3 \(batches are the same on any number of ranks\)' on 3 on_three
close one on_one 55
close one on_three 55
expect 0 'done: step 50 of 50' on 2 begun
cmp begun/model/model.safetensors two/model/model.safetensors || fail 'a run on two ranks that was stopped ends otherwise'

# A mistake on every rank is one error
expect 2 'global_batch_size: 6 rows do not divide into micro-batches of 1 on 4 ranks' on 4 four
exit $((failures > 0))
