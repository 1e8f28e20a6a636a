#!/usr/bin/env bash
# A rank of a run whose ranks compute every layer together is killed or stopped at random moments: half of the times they generate in the same
# layout, half of them in another one. tensor_kill_test.sh KEDGE MPIRUN KILLS
here=$(realpath "$(dirname "$0")")
half=$((($3 + 1) / 2))
"$here/sharding_kill_test.sh" "$1" "$2" $half 2 model.tensor_model_parallel_size=2 &&
  "$here/sharding_kill_test.sh" "$1" "$2" $half 2 model.sharding=all model.generation.tensor_parallel_size=2
