#!/usr/bin/env bash
# Online training on one and on two ranks: the same prompts, answers and rewards, and numbers equal up to the order of sums. online_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"
on() { # ranks, folder, algorithm, setting...
  local ranks=$1 folder=$2 algorithm=$3
  shift 3
  local -n words=$algorithm
  "${mpirun[@]}" -n "$ranks" "${words[@]}" "${rule[@]}" model.optim.lr=3e-4 exp_manager.explicit_log_dir="$folder" "$@"
}
# close FOLDER OTHER: as close_runs.py has it.
close() { python3 "$here/close_runs.py" "$1" "$2" 16 40 || fail "$1 and $2 differ"; }
for algorithm in reinforce rs; do
  expect 0 'done: step 20 of 20' on 1 ${algorithm}_one $algorithm
  expect 0 'done: step 20 of 20' on 2 ${algorithm}_two $algorithm
  expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect ${algorithm}_two
  close ${algorithm}_one ${algorithm}_two
  # Prompts from a queue: whoever answers them, the answers are the same.
  expect 0 'done: step 20 of 20' on 2 ${algorithm}_queue $algorithm trainer.$algorithm.batch_iterator.use_flask=true trainer.$algorithm.batch_iterator.port=0 \
    model.$algorithm.rollout_micro_batch_size=1
  close ${algorithm}_one ${algorithm}_queue
done
expect 0 'done: step 20 of 20' on 1 queue_alone reinforce trainer.reinforce.batch_iterator.use_flask=true trainer.reinforce.batch_iterator.port=0
same_online reinforce_one queue_alone

# The same number of ranks gives the same bits
expect 0 'done: step 20 of 20' on 2 twin reinforce
same_online reinforce_two twin
# Begun on two ranks, resumed on two and on one
expect 0 'done: step 8' on 2 begun reinforce trainer.reinforce.max_steps=8
cp -r begun on_one
expect 0 'ranks: 2 -> 1 \(batches are the same on any number of ranks\)' on 1 on_one reinforce
close reinforce_one on_one
expect 0 '^20 steps up to step 19 replay within the tolerance' "$kedge" bisect on_one
expect 0 'done: step 20 of 20' on 2 begun reinforce
same_online reinforce_two begun
# One rank is killed, and takes the other with it
on 2 shot reinforce >shot.log 2>&1 &
pid=$!
wait_for_step shot $pid 5
kill -9 "$(ranks_below $pid | tail -n 1)"
# A kill that came too late has killed nobody.
wait $pid && ! grep -q 'done: step 20' shot.log && fail "a run on two ranks survived the death of one: $(cat shot.log)"
expect 0 'resumed from shot/checkpoints' on 2 shot reinforce
same_online reinforce_two shot
expect 0 'done: step 20 of 20' on 2 lora_two reinforce model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2
expect 0 'done: step 20 of 20' on 1 lora_one reinforce model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2
close lora_one lora_two

# What every rank finds is said once: a key without effect, an end string that is no token
on 2 told reinforce trainer.reinforce.max_steps=1 model.mcore_gpt=true 'model.reinforce.sampling_params.end_strings=[cb]' >told.log 2>&1 || fail "two ranks: $(cat told.log)"
for what in 'mcore_gpt' 'end string "cb" is not a single token'; do
  [ "$(grep "$what" told.log | grep -c warning)" = 1 ] || fail "not one warning of two ranks: $what: $(cat told.log)"
done
# A mistake on every rank is one error
expect 2 'global_batch_size: 8 answers do not divide into micro-batches of 1 on 3 ranks' on 3 three reinforce
exit $((failures > 0))
