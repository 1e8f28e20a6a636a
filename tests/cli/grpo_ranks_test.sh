#!/usr/bin/env bash
# kedge grpo on one, two and three ranks: for each averaging, and with dynamic sampling, the same answers, and numbers equal up to the order of sums.
# grpo_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"
. "$here/grpo_support.sh"
on() { # ranks, folder, setting...
  local ranks=$1 folder=$2
  shift 2
  "${mpirun[@]}" -n "$ranks" "${grpo[@]}" trainer.grpo.num_rollouts_per_prompt=3 model.global_batch_size=6 model.optim.lr=3e-4 exp_manager.explicit_log_dir="$folder" "$@"
}
close() { python3 "$here/close_runs.py" "$1" "$2" 12 40 || fail "$1 and $2 differ"; }
compared() { # name, setting...
  local name=$1 ranks
  shift
  for ranks in 1 2 3; do
    expect 0 'done: step 20 of 20' on $ranks "${name}_$ranks" "$@"
    [ $ranks = 1 ] || close "${name}_1" "${name}_$ranks"
  done
}
for norm in reference tokens sequences sum constant; do
  compared $norm trainer.grpo.loss_norm=$norm
done
compared sequence_ratio trainer.grpo.sequence_level_importance_ratios=true trainer.grpo.reference_policy_kl_penalty=0.02
compared dynamic "${dynamic[@]}"
exit $((failures > 0))
