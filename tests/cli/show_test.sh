#!/usr/bin/env bash
# kedge show as a user meets it, on two short runs with a random model over a tokenizer of a few letters. show_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
reinforce+=("${rule[@]}" trainer.reinforce.val_check_interval=0)
unset COLUMNS
"${reinforce[@]}" exp_manager.explicit_log_dir=slow >slow.log 2>&1 || { cat slow.log; fail "the first run"; }
"${reinforce[@]}" model.optim.lr=1e-2 trainer.reinforce.max_steps=12 exp_manager.explicit_log_dir=fast >fast.log 2>&1 || { cat fast.log; fail "the second run"; }
show=("$kedge" show)

# A step
expect 0 '^slow, step 19$' "${show[@]}" slow
expect 0 '^16 answers to 4 prompts  reward ' "${show[@]}" slow
expect 0 '^11 more; --limit 0 shows all$' "${show[@]}" slow
expect 0 '^slow, step 0$' "${show[@]}" slow --step first
expect 0 '^slow/rollouts, step 7$' "${show[@]}" slow/rollouts --step 7
[ "$("${show[@]}" slow | grep -c '^   | b* c$')" = 5 ] || fail "not five prompts: $("${show[@]}" slow)"
# The JSON lines are sorted, and those at that end of what is recorded.
ordered() { # key, falling | rising, how many, flags...
  local key=$1 order=$2 count=$3
  shift 3
  "${show[@]}" slow --step 3 --json "$@" | python3 -c '
import json, sys
key, order, count = sys.argv[1:]
rows = [json.loads(line) for line in sys.stdin]
values = [row[key] for row in rows]
assert len(rows) == int(count), len(rows)
assert values == sorted(values, reverse=order == "falling"), values
assert all(row["step"] == 3 and "ids" not in row for row in rows)
every = [json.loads(line) for line in open("slow/rollouts/step-3.jsonl")][1:]
number_of = lambda row: row.get("length", len(row.get("ids", [])) - row.get("prompt_length", 0))
every = sorted((number_of(row) if key == "length" else row[key] for row in every), reverse=order == "falling")
assert sorted(values) == sorted(every[:len(rows)]), (values, every)' "$key" "$order" "$count" || fail "--sort $key is not $order: $*"
}
ordered reward falling 5
ordered reward falling 16 --limit 0
ordered reward rising 3 --worst --limit 3
ordered kl falling 5 --sort kl
ordered kl rising 5 --sort kl --worst
ordered length falling 5 --sort length
ordered advantage falling 5 --sort advantage
"${show[@]}" slow --json --limit 0 --sort order --full | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
kept = [json.loads(line) for line in open("slow/rollouts/step-19.jsonl")][1:]
assert len(rows) == len(kept) == 16
for row, other in zip(rows, kept):
    for name in other:
        close = lambda a, b: abs(a - b) <= 1e-6 * abs(b)  # floats come with fewer digits here, the same float
        same = all(map(close, row[name], other[name])) if isinstance(other[name], list) else row[name] == other[name]
        assert same, (name, row[name], other[name])' || fail "--json --full is not what is recorded"
[ "$("${show[@]}" slow --reverse --json | tac)" = "$("${show[@]}" slow --json)" ] || fail "--reverse does not turn the order about"

# Steps, and one prompt over steps
[ "$("${show[@]}" slow --steps | wc -l)" = 21 ] || fail "not a line a step: $("${show[@]}" slow --steps)"
[ "$("${show[@]}" slow --steps --json --limit 4 | python3 -c 'import json, sys; print([json.loads(line)["step"] for line in sys.stdin])')" = '[16, 17, 18, 19]' ] ||
  fail "--steps --limit 4 has not the newest"
"${show[@]}" slow --prompt 5 --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert len(rows) == 8 and len({row["step"] for row in rows}) == 2, rows  # four answers in each of two epochs
assert {row["prompt_id"] for row in rows} == {5}' || fail "--prompt 5"
expect 0 '^slow, prompt 5$' "${show[@]}" slow --prompt 5

# Two runs, two steps
expect 0 '^slow, step 11 -> fast, step 11$' "${show[@]}" slow --diff fast
expect 0 '^16 pairs, [0-9]+ differ  reward .* -> ' "${show[@]}" slow --diff fast
expect 0 '^16 pairs, 0 differ ' "${show[@]}" slow --diff slow
expect 0 '^   = ' "${show[@]}" slow --diff slow
"${show[@]}" slow --diff fast --json --limit 0 | python3 -c '
import json, sys
pairs = [json.loads(line) for line in sys.stdin]
assert len(pairs) == 16
differs = [pair["differs"] for pair in pairs]
assert differs == sorted(differs, reverse=True) and any(differs), differs
rise = [pair["reward"][1] - pair["reward"][0] for pair in pairs if pair["differs"]]
assert rise == sorted(rise, reverse=True), rise' || fail "--diff is not sorted"
met=$("${show[@]}" slow --prompt 5 --json | python3 -c 'import json, sys; print(*sorted({json.loads(line)["step"] for line in sys.stdin}))')
expect 0 "^slow, step ${met% *} -> slow, step ${met#* }$" "${show[@]}" slow --step "${met% *}" --other-step "${met#* }"

# For a terminal and for pipes
for flags in '' --steps '--prompt 5' '--diff fast' --full; do
  # shellcheck disable=SC2086
  "${show[@]}" slow $flags --limit 0 >out.txt
  awk 'length > 80 { exit 1 }' out.txt || fail "a line of more than 80 columns: $flags"
  ! grep -q $'\x1b' out.txt || fail "colours in a pipe: $flags"
done
COLUMNS=30 "${show[@]}" slow --limit 0 | awk 'length > 30 { exit 1 }' || fail "a line of more than COLUMNS"
"${show[@]}" slow --limit 0 --json --full 2>closed.txt | head -n 1 >/dev/null
[ "${PIPESTATUS[0]}" = 0 ] && [ ! -s closed.txt ] || fail "a pipe that is closed early: $(cat closed.txt)"

# What is wrong
expect 2 'nowhere: no such folder' "${show[@]}" nowhere
expect 2 'lm: no answers in it \(rollouts/step-N.jsonl\)' "${show[@]}" lm
expect 2 'slow: no answers of step 99; nearest: 19' "${show[@]}" slow --step 99
expect 2 'expected a step number, first or last, found "newest"' "${show[@]}" slow --step newest
expect 2 'slow: no answer to prompt 1000 in it; its prompts are from 0 to 39' "${show[@]}" slow --prompt 1000
expect 2 'give one of them' "${show[@]}" slow --steps --prompt 1
expect 2 'missing RUN' "${show[@]}"
cp -r slow broken
sed -i '3s/"kl":/"lk":/' broken/rollouts/step-4.jsonl
rm broken/rollouts/step-7.jsonl
expect 2 'broken/rollouts/step-4.jsonl:3: no "kl" field' "${show[@]}" broken --step 4
expect 2 'broken: no answers of step 7; nearest: 6 and 8' "${show[@]}" broken --step 7
sed -i 's/"prompt":"/&x/' broken/rollouts/step-5.jsonl
expect 2 'no prompt in common' "${show[@]}" slow --step 5 --diff broken
cp slow/rollouts/step-1.jsonl broken/rollouts/step-2.jsonl
expect 2 'step-2.jsonl:1: has the answers of step 1' "${show[@]}" broken --step 2

exit $((failures > 0))
