#!/usr/bin/env bash
# kedge report as a user meets it, on short runs with a random model over a tokenizer of a few letters. report_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
reinforce+=("${rule[@]}")
"${reinforce[@]}" exp_manager.explicit_log_dir=slow >slow.log 2>&1 || { cat slow.log; fail "the first run"; }
"${reinforce[@]}" model.optim.lr=1e-2 trainer.reinforce.max_steps=12 exp_manager.explicit_log_dir=fast >fast.log 2>&1 || { cat fast.log; fail "the second run"; }
"${sft[@]}" model.num_samples=2 trainer.sft.max_steps=8 exp_manager.explicit_log_dir=tuned >tuned.log 2>&1 || { cat tuned.log; fail "the third run"; }
before=$(find slow fast tuned -type f -exec sha256sum {} + | sort)
says() { grep -qE -- "$2" "$1" || fail "$1 does not say /$2/"; }

# One run
expect 0 '^report.html: [0-9.]+ KiB$' "$kedge" report slow
says report.html '^<!DOCTYPE html><!-- kedge report -->$'
says report.html '<title>slow</title>'
says report.html '<b>kedge reinforce, 20 of 20 steps, complete</b>'
says report.html '<figcaption>Reward</figcaption>'
says report.html '<h3>Answers of step 19</h3>'
says report.html '<h3>The same prompts early and late</h3>'
says report.html '<td class="code">model.optim.lr</td><td class="code">0.001</td>'
says report.html 'a step took '
says report.html '&amp;&amp; .*kedge.* reinforce '
[ "$("$kedge" report slow --out - | sed 's/Written .*//' | sha256sum)" = "$(sed 's/Written .*//' report.html | sha256sum)" ] || fail "--out - prints another report"
"$kedge" report slow --no-answers --title 'For <you>' --out short.html >/dev/null
says short.html '<title>For &lt;you&gt;</title>'
grep -q 'Answers of step' short.html && fail "--no-answers has answers"
# Two runs in the same charts
expect 0 '^both.html: ' "$kedge" report slow fast --out both.html
says both.html '<span class="k0"><i></i>slow, training</span>.*<span class="k1"><i></i>fast, training</span>'
says both.html '<td class="code">model.optim.lr</td><td class="code">0.001</td><td class="code">0.01</td>'
# A supervised one
expect 0 '^tuned.html: ' "$kedge" report tuned --out tuned.html
says tuned.html '<figcaption>Loss</figcaption>'
says tuned.html '<h3>Samples</h3>'
# A report is replaced, any other file is not
expect 0 '^report.html: ' "$kedge" report fast
says report.html '<title>fast</title>'
echo mine >mine.txt
expect 2 'error --out: mine.txt exists and is not a kedge report; give another file$' "$kedge" report slow --out mine.txt
[ "$(cat mine.txt)" = mine ] || fail "mine.txt was written"
expect 2 'missing RUNS' "$kedge" report
expect 2 'nothing: no such folder' "$kedge" report nothing
expect 2 'lm: not the folder of a run' "$kedge" report lm
expect 2 'slow/../slow is named twice' "$kedge" report slow slow/../slow
expect 2 '--out: no folder no/where' "$kedge" report slow --out no/where/r.html
expect 2 '--out: lm is a folder' "$kedge" report slow --out lm
[ "$before" = "$(find slow fast tuned -type f -exec sha256sum {} + | sort)" ] || fail "a run was written to"
# What is damaged is left out, with a word.
cp -r fast broken
echo 'no record' >broken/rollouts/step-11.jsonl
expect 0 'no answers in the report: .*step-11.jsonl' "$kedge" report broken --out broken.html
echo '{"step": 12, "time": 1, "train/loss": [1]}' >>broken/metrics.jsonl
expect 2 'broken/metrics.jsonl:[0-9]+: ' "$kedge" report broken --out broken.html
rm -rf broken/metrics.jsonl broken/rollouts broken/samples.jsonl broken/log.txt
expect 0 '^broken.html: ' "$kedge" report broken --out broken.html
says broken.html 'No metrics yet'

# In a real browser: it opens from the disk, without a complaint and without asking anybody for anything.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$browser" ]; then
  for page in both tuned; do
    HOME=$PWD timeout -k 1 60 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
      --enable-logging=stderr --v=0 --log-net-log="$PWD/net.json" --screenshot="$PWD/$page.png" --window-size=1200,2400 "file://$PWD/$page.html" >browser.log 2>&1 ||
      { cat browser.log; fail "the browser did not open $page.html"; }
    grep CONSOLE browser.log && fail "the browser complains of $page.html"
    # Chromium itself calls home; a page of ours has no reason to.
    grep -oE '"url":"(https?|wss?)://[^"]*"' net.json | grep -vE '://[^/]*(google|googleapis|gvt1)\.com' && fail "$page.html asks for something"
    [ "$(wc -c <"$page.png")" -gt 20000 ] || fail "$page.png has nothing in it"
  done
else
  echo "no chromium: the page was not opened in a browser"
fi
[ "$failures" = 0 ] && echo "all as expected"
exit "$((failures > 0))"
