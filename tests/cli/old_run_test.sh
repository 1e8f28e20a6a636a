#!/usr/bin/env bash
# A run folder that commit 9764ff1 made (tests/golden/make_old_run.sh, on aarch64) is shown, replays and resumes. Since then exponentials, logarithms and activations
# of the CPU are kedge's own, the same on every machine, so that numbers may differ in their last bits; the responses are the same, and numbers agree within 1e-6: a
# few roundings of fp32 log-probabilities near 2. old_run_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
cp -r "$here/../golden/old_run/." .
expect 0 'kedge reinforce, 4 of 4 steps, complete' "$kedge" inspect run
expect 0 'every byte as it was saved' "$kedge" inspect run --verify
expect 0 'run, step 3' "$kedge" show run --limit 1
"$kedge" replay run --step 0 --json >replay.json 2>replay.txt
expect 0 'resumed from .* at step 4' "$kedge" reinforce config.yaml trainer.reinforce.max_steps=8
python3 - <<'PYTHON' || failures=$((failures + 1))
import json
NEAR = 1e-6
for quantity in json.load(open("replay.json"))["quantities"]:
    if quantity["name"] != "weights after":
        assert quantity["compared"] > 0 and (quantity["differ"] == 0 or quantity["largest"] <= NEAR), quantity
lines = [json.loads(line) for line in open("run/metrics.jsonl") if '"train_rollouts/rewards"' in line]
wanted = [json.loads(line) for line in open("rewards.jsonl")]
assert [line["step"] for line in lines] == [line["step"] for line in wanted] == list(range(8)), "steps"
for line, want in zip(lines, wanted):
    for name, value in want.items():
        if name != "time" and not name.startswith("timers/") and name != "train/step_time":
            assert abs(line[name] - value) <= NEAR, (line["step"], name, line[name], value)
PYTHON
exit $((failures > 0))
