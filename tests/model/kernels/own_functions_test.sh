#!/usr/bin/env bash
# Sources that are compiled for one vector unit define no function that another source may define too: the linker keeps one copy of those for the
# program, and a CPU without the unit would run it. own_functions_test.sh OBJECT...
set -uo pipefail
failures=0 looked_at=0
for object in "$@"; do
  case $object in *cpu_products_avx*.o | *cpu_matrix_unit*.o) ;; *) continue ;; esac
  looked_at=$((looked_at + 1))
  shared=$(nm --demangle "$object" | grep ' W ') || continue
  echo "$object defines what others may define too:"
  echo "$shared"
  failures=$((failures + 1))
done
[ $looked_at = 3 ] || { echo "looked at $looked_at objects, not at 3"; exit 1; }
exit $((failures > 0))
