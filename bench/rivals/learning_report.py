"""Compares both sides, from the folders that bench/sft_learning, bench/rm_learning (one a split) and bench/sft_speed (one a round) leave.

    learning_report.py loss FOLDER ...         the last validation loss in kedge/metrics.jsonl, and trl.json
    learning_report.py accuracy FOLDER ...     pairs in the right order: scores.jsonl of kedge score, trl.json, tokens.json
    learning_report.py speed FOLDER ...        steps in kedge/metrics.jsonl and when it was started, and trl.json

Standard errors are those of the mean of the paired differences: over splits for losses, over all held-out pairs for accuracies.
"""

import json
import pathlib
import statistics
import sys

import rival_data


def standard_error(values):
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def report_losses(folders):
    ours, theirs = [], []
    for folder in folders:
        losses = [line["validation/loss"] for line in rival_data.read_rows(folder / "kedge/metrics.jsonl") if "validation/loss" in line]
        trl = json.loads((folder / "trl.json").read_text())
        ours.append(losses[-1])
        theirs.append(trl["loss_after"])
        print(f"{folder.name}: kedge {ours[-1]:.4f}, TRL {theirs[-1]:.4f} after {trl['steps']} steps, from {trl['loss_before']:.4f}")
    relative = [100 * (a / b - 1) for a, b in zip(ours, theirs)]
    print(f"validation loss: kedge {statistics.mean(ours):.4f}, TRL {statistics.mean(theirs):.4f}, difference "
          f"{statistics.mean(relative):+.3f} % (standard error {standard_error(relative):.3f})")


def report_accuracies(folders):
    kind = folders[0].name.rpartition("-")[0]
    rivals = {name: file for name, file in {"TRL": "trl.json", "token counts": "tokens.json"}.items() if (folders[0] / file).exists()}
    correct = {name: [] for name in ["kedge", *rivals]}
    for folder in folders:
        rewards = [line["reward"] for line in rival_data.read_rows(folder / "scores.jsonl")]
        split = {"kedge": [int(better > worse) for better, worse in zip(rewards[0::2], rewards[1::2], strict=True)]}
        split |= {name: json.loads((folder / file).read_text())["correct"] for name, file in rivals.items()}
        print(f"{folder.name}: " + ", ".join(f"{name} {100 * statistics.mean(values):.1f} %" for name, values in split.items()))
        for name, values in split.items():
            correct[name] += values
    ours = correct.pop("kedge")
    for name, values in correct.items():
        differences = [100 * (a - b) for a, b in zip(ours, values, strict=True)]
        print(f"{kind}, {len(ours)} held-out pairs: kedge {100 * statistics.mean(ours):.2f} %, {name} {100 * statistics.mean(values):.2f} %, "
              f"difference {statistics.mean(differences):+.2f} (standard error {standard_error(differences):.2f})")


def report_speed(folders):
    """Both sides made the same steps; the first is not counted, what happens between steps is. The medians of the rounds."""
    ours, theirs, ours_first, theirs_first = [], [], [], []
    for folder in folders:
        trl = json.loads((folder / "trl.json").read_text())
        ends = [line["time"] for line in rival_data.read_rows(folder / "kedge/metrics.jsonl") if "train/loss" in line]
        assert len(ends) == trl["steps"], (len(ends), trl["steps"])
        ours.append(trl["tokens"] / (ends[-1] - ends[0]))
        theirs.append(trl["tokens_per_s"])
        ours_first.append(ends[0] - float((folder / "started").read_text()))
        theirs_first.append(trl["first_step_s"])
    ours, theirs, ours_first, theirs_first = map(statistics.median, (ours, theirs, ours_first, theirs_first))
    print(f"{folders[0].name.rpartition('-')[0]}: kedge {ours:.0f} tokens/s, TRL {theirs:.0f} tokens/s, ratio {ours / theirs:.2f}; "
          f"start to first step: kedge {ours_first:.2f} s, TRL {theirs_first:.2f} s")


def main():
    {"loss": report_losses, "accuracy": report_accuracies, "speed": report_speed}[sys.argv[1]]([pathlib.Path(folder) for folder in sys.argv[2:]])


if __name__ == "__main__":
    main()
