#!/usr/bin/env bash
# Runs on ranks that hold the model together: whatever is sharded, 20 steps of SFT, reward models, REINFORCE, RS and PPO end with the same bits; a run
# resumes with another sharding with the same bits too, and on another number of ranks with losses within 1e-5. sharding_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"
kinds=(optimizer gradients all)

on() { # ranks, folder, command, setting...
  local ranks=$1 folder=$2
  local -n words=$3
  shift 3
  "${mpirun[@]}" -n "$ranks" "${words[@]}" trainer.transport="${KEDGE_TEST_TRANSPORT:-auto}" exp_manager.explicit_log_dir="$folder" "$@"
}
same_weights() { # folder, other: the files that ranks write together have the bytes of those that rank 0 writes alone
  cmp "$1/model/model.safetensors" "$2/model/model.safetensors" || fail "$1 and $2 end with different weights"
  diff -rq "$(last_of "$1")/model" "$(last_of "$2")/model" || fail "the checkpoints of $1 and $2 have different models"
}

train=("${sft[@]}" model.data.train_ds.global_batch_size=12 model.data.train_ds.micro_batch_size=1 trainer.sft.max_epochs=50 trainer.sft.max_steps=20
  trainer.sft.val_check_interval=10 trainer.sft.save_interval=10 model.optim.lr=1e-3 model.optim.sched.name=constant)
rewarded=("${reinforce[@]}" "${rule[@]}" model.optim.lr=3e-4)

for ranks in 2 4; do
  expect 0 'done: step 20 of 20' on $ranks sft_${ranks}_none train model.sharding=none
  for kind in "${kinds[@]}"; do
    expect 0 'done: step 20 of 20' on $ranks sft_${ranks}_$kind train model.sharding=$kind
    same_weights sft_${ranks}_none sft_${ranks}_$kind
    diff <(losses sft_${ranks}_none) <(losses sft_${ranks}_$kind) || fail "sft on $ranks ranks, $kind: other losses"
  done
done
expect 0 'done: step 20 of 20' on 4 sft_4_groups train model.sharding=all model.sharding_group=2
expect 0 'done: step 20 of 20' on 4 sft_4_groups_none train model.sharding=none model.sharding_group=2
same_weights sft_4_groups_none sft_4_groups
close sft_4_none sft_4_groups 22

for ranks in ${KEDGE_TEST_ONLINE_RANKS:-2}; do
  expect 0 'done: step 20 of 20' on $ranks online_${ranks}_none rewarded model.sharding=none
  for kind in "${kinds[@]}"; do
    expect 0 'done: step 20 of 20' on $ranks online_${ranks}_$kind rewarded model.sharding=$kind
    same_weights online_${ranks}_none online_${ranks}_$kind
    diff -rq online_${ranks}_none/rollouts online_${ranks}_$kind/rollouts || fail "the rollouts of online_${ranks}_$kind differ"
    diff <(numbers_of online_${ranks}_none) <(numbers_of online_${ranks}_$kind) || fail "the numbers of online_${ranks}_$kind differ"
  done
  # One process computes the recorded rollouts' steps again: losses of ranks and of one process agree.
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect online_${ranks}_all
  replays online_${ranks}_all
done

# Begun with one sharding, resumed with the others, to the bit; on other numbers of ranks within roundings.
expect 0 'done: step 10' on 4 begun train model.sharding=all trainer.sft.max_steps=10
[ -e "$(last_of begun)/state/state.3.safetensors" ] || fail 'rank 3 wrote no part of the state'
for kind in none optimizer; do
  cp -r begun resumed_$kind
  expect 0 'resumed from resumed.* at step 10' on 4 resumed_$kind train model.sharding=$kind
  same_weights sft_4_none resumed_$kind
done
# Their last checkpoint is not among the best: no rank leaves a part of it, in model/ least of all.
kept=exp_manager.checkpoint_callback_params
for ranks in 1 2; do
  cp -r begun resumed_on_$ranks
  expect 0 "ranks: 4 -> $ranks" on $ranks resumed_on_$ranks train model.sharding=all $kept.monitor=step $kept.save_top_k=1 $kept.save_last=false
  close sft_4_none resumed_on_$ranks 22
  [ -z "$(ls -A resumed_on_$ranks/.checkpoint-parts 2>/dev/null)" ] || fail "on $ranks ranks, parts of a checkpoint are left"
done
diff <(cd resumed_on_1/model && find . | sort) <(cd resumed_on_2/model && find . | sort) || fail 'model/ of two ranks has other files than that of one'
expect 0 '' "$kedge" export "$(last_of begun)/model" --out exported

# A checkpoint that ranks cannot write is told, and does not stop the run. The ranks are halted while something is put in their way.
"${mpirun[@]}" -n 2 "${train[@]}" model.sharding=all trainer.sft.max_steps=40 trainer.sft.save_interval=20 exp_manager.explicit_log_dir=blocked >blocked.log 2>&1 &
pid=$!
wait_for_step blocked $pid 1
pids=$(ranks_below $pid)
kill -STOP $pids
mkdir -p blocked/.checkpoint-parts/20/model/model.safetensors
kill -CONT $pids
wait $pid || fail "a checkpoint that was not written ended the run: $(cat blocked.log)"
grep -q 'error \[rank 0\] the checkpoint of step 20 could not be saved: .*model.safetensors: cannot be written' blocked.log || fail "nobody says what is wrong: $(cat blocked.log)"
cmp blocked/model/model.safetensors "$(last_of blocked)/model/model.safetensors" || fail 'the checkpoint after the one that failed is another'

# Planned without ranks: the same network, so the same bytes.
planned=("$kedge" plan "${train[@]:1}" --no-time model.sharding=all model.sharding_group=2)
expect 0 '4 ranks in groups of 2' "${planned[@]}" --mesh 2x2 --links nvlink=300,net=20
expect 0 '"group": ?2' "${planned[@]}" --mesh 2x2 --json
expect 2 '--mesh: expected NODESxGPUS, such as 2x8, found "2"' "${planned[@]}" --mesh 2
expect 2 '--links: expected nvlink=GB/S,net=GB/S, found "fast=3"' "${planned[@]}" --mesh 2x2 --links fast=3
expect 2 '--links: needs --mesh' "${planned[@]}" --links net=3
expect 2 'model.sharding_group: 3 ranks do not divide the 4 ranks of the job' on 4 wrong train model.sharding_group=3
exit $((failures > 0))
