#!/usr/bin/env bash
# The power fails while kedge reinforce starts, trains, records, saves or is resumed. power_cut_run_test.sh KEDGE SHIM STRIDE: every STRIDE-th point
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/power_cut_support.sh"
run=("${reinforce[@]}" "${rule[@]}" trainer.reinforce.max_steps=$steps rollouts.keep=all exp_manager.explicit_log_dir=disk/run)
again() { "${run[@]}" >again.txt 2>&1; }
same() { same_online whole disk/run; [ "$failures" = "${failed:-0}" ] || { echo "  ($1)"; failed=$failures; }; }

mkdir disk disk.before
(logged "${run[@]}") >whole.log 2>&1 || fail "the run that is left alone: $(tail -n 3 whole.log)"
cp -a disk/run whole
cut_everywhere 'from the start'
# Killed behind its first checkpoint, it is resumed.
rm -rf disk disk.before disk.log
"${run[@]}" trainer.reinforce.max_steps=2 >part.log 2>&1 || fail "the run that is to be resumed: $(tail -n 3 part.log)"
cp -a disk disk.before
(logged "${run[@]}") >resumed.log 2>&1 || fail "the resumed run: $(tail -n 3 resumed.log)"
grep -q 'resumed from' resumed.log || fail 'nothing was resumed'
cut_everywhere 'resumed'
counted 300 start save metrics record model
exit $((failures > 0))
