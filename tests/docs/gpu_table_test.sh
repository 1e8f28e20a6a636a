#!/usr/bin/env bash
# bench/gpu_table with tiny models on a CPU: every group gives its figures, and docs/performance.md has a row for each of them. gpu_table_test.sh KEDGE
# shellcheck disable=SC2016  # rows have backquotes
set -uo pipefail
kedge=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
out=$(TRY=1 KEDGE=$kedge KEDGE_BENCH_DIR=$folder/work TABLE=$folder/table.jsonl bench/gpu_table 2>&1) || fail "exit $?: $out"
rows=$(grep -c '"value": ' "$folder/table.jsonl")
[ "$rows" = 22 ] || fail "$rows of 22 rows have a figure: $out"
grep -q '^Time: decode .* ppo .* in total' <<<"$out" || fail "no times: $out"
while IFS= read -r work; do
  grep -qF "| $work |" docs/performance.md || fail "docs/performance.md has no row \"$work\""
done < <(python3 -c 'import json, sys
for line in open(sys.argv[1]): print(json.loads(line)["work"])' "$folder/table.jsonl")

# The real table: what is run, without running it.
commands=$(DRY=1 bench/gpu_table train ppo) || fail "DRY: exit $?"
[ "$(wc -l <<<"$commands")" = 4 ] || fail "train and ppo are not four commands: $commands"
[[ $commands == *'--shape 8b '*'--lora 32'*'bench/gpu_ppo resident' ]] || fail "other commands: $commands"
bench/gpu_table nothing >/dev/null && fail "an unknown group is accepted"

# A row: its figure against bar and goal, memory that was planned too small, and a benchmark that failed.
row() { python3 bench/table_row.py "$folder/row.jsonl" group work "$@" 7 'kedge it'; }
is() { [ "$1" = "$2" ] || fail "found $1, expected $2"; }
is "$(row tok/s 100e3 110e3 rate <<<'{"rate": {"median": 105000}, "peak_bytes": 2147483648, "planned_bytes": 2040109465}')" \
  '| work | 105.0k tok/s (bar) | 100.0k tok/s | 110.0k tok/s | 1.9 / 2.0 | `kedge it` |'
is "$(row s 2 1.5 time <<<$'built in 3 s\n{"time": 1.5, "peak_gib": 10, "planned_gib": 8}')" '| work | 1.50 s (goal) | 2.00 s | 1.50 s | 8.0 / 10.0 (off) | `kedge it` |'
is "$(row s 2 1.5 time <<<'{"time": 4}')" '| work | 4.00 s (0.50 of the bar) | 2.00 s | 1.50 s | - | `kedge it` |'
is "$(row s 2 1.5 time <<<'{"other": 4}')" '| work | failed | 2.00 s | 1.50 s | - | `kedge it` |'
exit $((failures > 0))
