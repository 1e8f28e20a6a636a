"""kedge's and TRL's steps of one job: how far their losses are apart, and how long each took.

    preference_report.py RUN TRL.json      RUN: a folder of kedge dpo or kedge kto; TRL.json: what trl_preference.py printed
"""

import json
import pathlib
import re
import statistics
import sys


def main():
    run, theirs = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text().splitlines()[-1])
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [row["train/loss"] for row in rows if "train/loss" in row]
    ours = [row["train/step_time"] for row in rows if "train/step_time" in row][1:]  # the first one warms things up
    apart = max(abs(a - b) for a, b in zip(losses, theirs["losses"], strict=True))
    reference = re.search(r"reference log-probabilities of (\d+) rows in (\d+) ms", (run / "log.txt").read_text())
    share = int(reference[2]) / 1000 / len(losses)  # of the reference, computed before the first step, in a step
    both = [dict(median=round(statistics.median(steps), 4), fastest_tenth=round(statistics.quantiles(steps, n=10)[0], 4)) for steps in (ours, theirs["steps_s"])]
    ratios = {name: round(both[0][name] / both[1][name], 3) for name in both[0]}
    ratios["median_with_reference"] = round((both[0]["median"] + share) / both[1]["median"], 3)
    print(json.dumps(dict(algorithm=theirs["algorithm"], steps=len(losses), trl_precomputes=theirs["precompute"], threads=theirs["threads"],
                          first_loss=losses[0], last_loss=losses[-1], largest_difference=apart, kedge_step_s=both[0], trl_step_s=both[1],
                          kedge_reference_s_per_step=round(share, 4), ratio=ratios)))


if __name__ == "__main__":
    main()
