#!/usr/bin/env bash
# One call of the system fails on a file of a run of kedge sft. fault_sft_test.sh KEDGE SHIM STRIDE: every STRIDE-th call
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/fault_support.sh"
job=("${sft[@]}" trainer.sft.max_steps=$steps exp_manager.explicit_log_dir=run)

same() {
  same_models whole run "$1"
  same_numbers whole run "$1" out.txt
}

expect 0 "done: step $steps of $steps" "${job[@]}" exp_manager.explicit_log_dir=whole
stopped_in_the_middle half.log "${job[@]}"
mv run half
sweep fresh "${disk_faults[@]}"
sweep half "${disk_faults[@]}"
swept 1000 "${disk_faults[@]}"
exit $((failures > 0))
