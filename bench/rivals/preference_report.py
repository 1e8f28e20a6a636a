"""kedge's and TRL's steps of one job: how far their losses are apart, and how long each took.

    preference_report.py RUN TRL.json      RUN: a folder of kedge dpo or kedge kto; TRL.json: what trl_preference.py printed
"""

import json
import pathlib
import statistics
import sys


def main():
    run, theirs = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text().splitlines()[-1])
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [row["train/loss"] for row in rows if "train/loss" in row]
    seconds = [row["train/step_time"] for row in rows if "train/step_time" in row][1:]
    apart = max(abs(a - b) for a, b in zip(losses, theirs["losses"], strict=True))
    ours = statistics.median(seconds)
    print(json.dumps(dict(algorithm=theirs["algorithm"], steps=len(losses), precompute=theirs["precompute"], threads=theirs["threads"], first_loss=losses[0],
                          last_loss=losses[-1], largest_difference=apart, kedge_step_s=round(ours, 4), trl_step_s=round(theirs["step_s"], 4),
                          ratio=round(ours / theirs["step_s"], 3))))


if __name__ == "__main__":
    main()
