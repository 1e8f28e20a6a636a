#!/usr/bin/env bash
# One call of the system fails on a file of a run of kedge reinforce, whose answers and rewards are recorded. fault_reinforce_test.sh KEDGE SHIM STRIDE:
# every STRIDE-th call
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/fault_support.sh"
job=("${reinforce[@]}" "${rule[@]}" trainer.reinforce.max_steps=$steps rollouts.keep=all exp_manager.explicit_log_dir=run)

same() {
  same_models whole run "$1"
  same_numbers whole run "$1" out.txt
  same_rollouts whole run "$1" out.txt
}

expect 0 "done: step $steps of $steps" "${job[@]}" exp_manager.explicit_log_dir=whole
# With a record of a step that comes after its checkpoint, as a kill leaves it: a resumed run uses those answers.
stopped_in_the_middle half.log "${job[@]}"
mv run half
cp whole/rollouts/* half/rollouts/
sweep fresh "${disk_faults[@]}"
sweep half "${disk_faults[@]}"
swept 1100 "${disk_faults[@]}"
exit $((failures > 0))
