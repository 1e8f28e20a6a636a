#!/usr/bin/env python3
"""Two online runs of 20 steps on other numbers of ranks: prompts, answers and rewards are equal; log-probabilities, baselines and losses within 1e-5.
The ranks' gradients are added in another order than one rank adds them, so weights differ by roundings of about 1e-7, which grow over 20 steps; 1e-5
leaves them room and no mistake.

  close_runs.py ONE OTHER ROWS LOSSES      rows of a step, and losses of a run
"""
import json, sys
one, other = sys.argv[1:3]
LIMIT, NUM_ROWS, NUM_LOSSES = 1e-5, int(sys.argv[3]), int(sys.argv[4])
most = {}
def near(name, a, b, where):
    difference = abs(a - b) / max(1, abs(a))  # some are sums over tokens, above ten
    most[name] = max(most.get(name, 0), difference)
    assert difference < LIMIT, (where, name, a, b)
for step in range(20):
    rows, others = ([json.loads(line) for line in list(open(f"{folder}/rollouts/step-{step}.jsonl"))[1:]] for folder in (one, other))
    assert len(rows) == len(others) == NUM_ROWS
    for row, match in zip(rows, others):
        where = (step, row["slot"], row["sample"])
        for name in ("prompt_id", "slot", "sample", "prompt", "response", "ids", "prompt_length", "finished", "reward", "trains"):
            assert row[name] == match[name], (where, name, row[name], match[name])
        for name in ("baseline", "advantage", "kl", "kl_sum", "reward_with_kl"):
            near(name, row[name], match[name], where)
        assert len(row["logprobs"]) == len(match["logprobs"])
        for a, b in zip(row["logprobs"], match["logprobs"]):
            near("logprobs", a, b, where)
metrics = [[line for line in map(json.loads, open(f"{folder}/metrics.jsonl"))] for folder in (one, other)]
assert len(metrics[0]) == len(metrics[1])
losses = 0
for a, b in zip(*metrics):
    assert a["step"] == b["step"] and sorted(name for name in a if not name.startswith("timers/")) == sorted(name for name in b if not name.startswith("timers/")), (a, b)
    for name in a:
        if name.startswith(("train_rollouts/", "val_rollouts/")):
            near(name.split("/")[0], a[name], b[name], (a["step"], name))
        if name == "train_optim/loss":
            losses += 1
            near("loss", a[name], b[name], a["step"])
            assert abs(a[name] - b[name]) < LIMIT, (a, b)
assert losses == NUM_LOSSES, losses
print(f"{one} and {other}: {losses} losses; largest differences: " + ", ".join(f"{name} {value:.2g}" for name, value in most.items()))
