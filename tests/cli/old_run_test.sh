#!/usr/bin/env bash
# A run folder that commit 9764ff1 made (tests/golden/make_old_run.sh, aarch64) is shown, replays and resumes: on aarch64 to the bit, elsewhere to the same numbers.
# old_run_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
cp -r "$here/../golden/old_run/." .
expect 0 '4 of 12 steps' "$kedge" inspect run
expect 0 'step 3' "$kedge" show run --limit 1
[ "$(uname -m)" = aarch64 ] && expect 0 'equal' "$kedge" replay run --step 3
expect 0 'resumed from .* at step 4' "$kedge" reinforce config.yaml trainer.reinforce.max_steps=8
found=$(sha256sum run/model/model.safetensors | cut -d ' ' -f 1)
if [ "$(uname -m)" = aarch64 ] && [ "$found" != "$(cat weights.sha256)" ]; then
  echo "FAILED: the weights after step 8 have the hash $found, and 9764ff1's $(cat weights.sha256)"
  failures=$((failures + 1))
fi
# Products are rounded differently on other machines; the responses, and so their rewards, are the same unless a sample falls between two roundings.
python3 - <<'PYTHON' || failures=$((failures + 1))
import json
lines = [json.loads(line) for line in open("run/metrics.jsonl") if '"train_rollouts/rewards"' in line]
wanted = [json.loads(line) for line in open("rewards.jsonl")]
assert [line["step"] for line in lines] == [line["step"] for line in wanted] == list(range(8)), "steps"
for line, want in zip(lines, wanted):
    for name in ("train_rollouts/rewards", "train_rollouts/generation_length"):
        assert abs(line[name] - want[name]) <= 1e-6 * max(1, abs(want[name])), (line["step"], name, line[name], want[name])
PYTHON
exit $((failures > 0))
