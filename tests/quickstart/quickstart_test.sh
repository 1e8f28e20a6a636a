#!/usr/bin/env bash
# scripts/quickstart from its first word to its last, for every algorithm: with --short, or as a newcomer runs it (full), where the reward must rise.
#   quickstart_test.sh PROGRAM PYTHON short|full
here=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "$1") python=$2 size=$3
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
expect() { # CODE PATTERN COMMAND...
  local code=$1 pattern=$2 out status
  shift 2
  out=$("$@" 2>&1)
  status=$?
  [ $status = "$code" ] && grep -qE -- "$pattern" <<<"$out" || fail "$* ended with $status, wanted $code and /$pattern/: $out"
}
quickstart=("$here/scripts/quickstart" --kedge "$program")
[ "$size" = full ] || quickstart+=(--short)

expect 0 'quickstart --algo ppo' "${quickstart[@]}" --help
expect 2 "expected reinforce, ppo or rs, found 'dpo'" "${quickstart[@]}" --algo dpo
expect 2 'not a model folder' "${quickstart[@]}" --model nowhere
expect 2 'unknown option --fast' "${quickstart[@]}" --fast

# Stopped in the middle of its alignment, it goes on when it is started again.
"${quickstart[@]}" >stopped.txt 2>&1 &
process=$!
for _ in $(seq 1200); do
  [ "$(grep -cs train/step_time quickstart/reinforce/aligned/actor/metrics.jsonl)" -ge 1 ] 2>/dev/null && break
  kill -0 $process 2>/dev/null || break
  sleep 0.1
done
kill -TERM $process 2>/dev/null
wait $process
status=$?
[ $status = 130 ] && grep -q 'the same command resumes from here' stopped.txt || fail "stopped, it ended with $status: $(cat stopped.txt)"
sleep 0.5
for left in $(grep -lsaF "$folder/quickstart" /proc/[0-9]*/cmdline); do
  [ "$(readlink "${left%/cmdline}/exe")" != "$program" ] || fail "left behind: $(tr '\0' ' ' <"$left")"
done

for algo in reinforce ppo rs; do
  "${quickstart[@]}" --algo $algo >$algo.txt 2>&1 || fail "$algo ended with $?: $(cat $algo.txt)"
  grep -q 'equal, to the last bit of every weight' $algo.txt || fail "$algo: no equal weights: $(cat $algo.txt)"
  grep -qE 'killed after step [0-9]+: kill -9' $algo.txt || [ -e quickstart/.done/$algo-killed ] || fail "$algo was not killed"
  grep -qE 'reward, trained on +-?[0-9.e-]+ +-?[0-9.e-]+ ' $algo.txt || fail "$algo: no rewards in its table: $(cat $algo.txt)"
  grep -qE 'memory, planned and measured +[1-9][0-9]* +[1-9][0-9]* ' $algo.txt || fail "$algo: no memory in its table: $(cat $algo.txt)"
  [ "$(grep -c '^      before   .' $algo.txt)" = 3 ] && [ "$(grep -c '^      after    .' $algo.txt)" = 3 ] || fail "$algo: no samples: $(cat $algo.txt)"
  [ -s quickstart/report.html ] || fail "$algo: no report"
  if [ "$size" = full ]; then
    cat $algo.txt
    read -r first last < <(sed -nE 's/.*reward, trained on +(-?[0-9.e-]+) +(-?[0-9.e-]+) .*/\1 \2/p' $algo.txt)
    awk -v first="$first" -v last="$last" 'BEGIN {exit !(last > first + 1)}' || fail "$algo: the reward went from $first to $last"
  fi
  if [ -x "$python" ]; then
    HF_HUB_OFFLINE=1 "$python" - <<'PYTHON' || fail "$algo: transformers does not take its export"
import transformers
model = transformers.AutoModelForCausalLM.from_pretrained("quickstart/export")
tokenizer = transformers.AutoTokenizer.from_pretrained("quickstart/export")
text = tokenizer.apply_chat_template([{"role": "user", "content": "Where is the bakery?"}], add_generation_prompt=True, tokenize=False)
ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
out = model.generate(ids, max_new_tokens=48, do_sample=False)[0, ids.shape[1]:]
assert len(out) > 0
print(tokenizer.decode(out))
PYTHON
  else
    echo "transformers is not asked: no $python"
  fi
done
expect 2 'was started with another model' "${quickstart[@]}" --model quickstart/base
[ $failures = 0 ] && echo "quickstart works" || exit 1
