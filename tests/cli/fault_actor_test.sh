#!/usr/bin/env bash
# One call of the system fails in the actor of kedge ppo: on a file of its folder, or while it connects to the critic's server. fault_actor_test.sh KEDGE SHIM
# STRIDE: every STRIDE-th call
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
. "$here/fault_support.sh"
. "$here/fault_ppo_support.sh"

faulty() {
  begin_critic
  (with_fault run "${actor[@]}") >out.txt 2>&1
  code=$?
  end_critic # by the signal itself where it had only begun
}

connect_faults=(connect:ECONNREFUSED connect:ETIMEDOUT connect:EMFILE)
sweep fresh "${disk_faults[@]}" "${connect_faults[@]}"
sweep half "${disk_faults[@]}" "${connect_faults[@]}"
swept 1000 "${disk_faults[@]}" "${connect_faults[@]}"
exit $((failures > 0))
