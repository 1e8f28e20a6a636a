"""Tables of bench/stories_learning and bench/stories_defaults, from the runs' metrics.jsonl and from the CSV files of both sides.

    stories_report.py curve RUN FILE.csv       a run's steps as a CSV, with the columns of trl_rloo.py; of PPO also those of the critic
    stories_report.py row   FOLDER NAME        kedge-NAME.csv and, if it exists, trl-NAME.csv: a line
    stories_report.py bar   FOLDER NAME ...    the same over several seeds, and whether the bars are held: TRL's reward, a third of its time
    stories_report.py judge RUN                how often a reward model's run orders held-out pairs rightly
    stories_report.py rise  RUN ...            the rise of the reward within each run, and over all
"""

import csv
import json
import math
import pathlib
import statistics
import sys

import rival_data

REWARDS = ("train_rollouts/rewards", "train_rollouts/global_rewards")  # of REINFORCE, of rejection sampling
COLUMNS = {
    "seconds": ("train/step_time",),
    "generation_seconds": ("timers/generate",),
    "reward": REWARDS,
    "kl": ("train_rollouts/init_policy_kl",),
    "entropy": ("train_rollouts/entropy",),
    "length": ("train_rollouts/generation_length", "train_rollouts/global_response_lengths_mean"),
    "ended": ("train_rollouts/fraction_of_samples_properly_ended",),
    "watched": ("train_rollouts/watch/lexicon", "train_rollouts/watch/right"),
    "value_loss": ("train_rollouts/values_loss",),  # of PPO's critic, before it learns from the step
    "value_explained": ("train_rollouts/values_explained",),
}


def steps_of(run):
    """All numbers of each training step of a run; a step's lines are put together, for a name that occurs twice the last counts."""
    steps = {}
    for line in rival_data.read_rows(pathlib.Path(run) / "metrics.jsonl"):
        steps.setdefault(line["step"], {}).update(line)
    return [numbers for _, numbers in sorted(steps.items()) if any(name in numbers for name in REWARDS)]


def columns_of(run):
    """Each column as a list with a number for every step, or None where the run does not have it."""
    steps = steps_of(run)
    found = dict(step=[numbers["step"] for numbers in steps])
    for column, names in COLUMNS.items():
        name = next((name for name in names if name in steps[0]), None)
        found[column] = [float(numbers[name]) for numbers in steps] if name else None
    return found


def write_curve(run, path):
    columns = {name: values for name, values in columns_of(run).items() if values is not None}
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for row in zip(*columns.values()):
            table.writerow([row[0], *(format(value, ".5g") for value in row[1:])])


class Curve:
    """What the table says of one side: read from its CSV. The first step warms things up, and its time is not counted."""

    def __init__(self, path):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.reward = statistics.mean(float(row["reward"]) for row in rows[-5:])
        self.seconds = statistics.median(float(row["seconds"]) for row in rows[1:] or rows)
        self.kl = float(rows[-1]["kl"])


def sides_of(folder, name):
    paths = {side: pathlib.Path(folder) / f"{side}-{name}.csv" for side in ("kedge", "trl")}
    return {side: Curve(path) for side, path in paths.items() if path.exists()}


def print_row(folder, name):
    sides = sides_of(folder, name)
    text = "; ".join(f"{'TRL' if side == 'trl' else side}: reward {curve.reward:.2f}, {curve.seconds:.3f} s a step, kl {curve.kl:.3f}"
                     for side, curve in sides.items())
    if "trl" in sides:
        text += f"; {sides['kedge'].seconds / sides['trl'].seconds:.3f} of TRL's time"
    print(f"{name}: {text}", flush=True)


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def print_bar(folder, *names):
    """The rewards' means over seeds, and the medians of the seeds' times. Reached is what lies at most TRL's own spread over seeds below."""
    runs = [sides_of(folder, name) for name in names]
    title = names[0].rpartition("-seed")[0]
    rewards = {side: [run[side].reward for run in runs if side in run] for side in ("kedge", "trl")}
    seconds = {side: [run[side].seconds for run in runs if side in run] for side in ("kedge", "trl")}
    line = f"{title}, {len(runs)} seeds: reward of the last five steps: kedge {statistics.mean(rewards['kedge']):.2f} (sd {spread(rewards['kedge']):.2f})"
    if rewards["trl"]:
        share = statistics.median(seconds["kedge"]) / statistics.median(seconds["trl"])
        reached = statistics.mean(rewards["kedge"]) >= statistics.mean(rewards["trl"]) - spread(rewards["trl"])
        line += (f", TRL {statistics.mean(rewards['trl']):.2f} (sd {spread(rewards['trl']):.2f}): {'reached' if reached else 'NOT reached'}; "
                 f"a step: kedge {statistics.median(seconds['kedge']):.3f} s, TRL {statistics.median(seconds['trl']):.3f} s, "
                 f"share {share:.3f}: {'at most' if share <= 1 / 3 else 'MORE than'} a third")
    else:
        line += f"; a step: {statistics.median(seconds['kedge']):.3f} s"
    print(line)


def print_judge(run):
    lines = [line for line in rival_data.read_rows(pathlib.Path(run) / "metrics.jsonl") if "validation/acc" in line]
    print(f"judge: {100 * lines[-1]['validation/acc']:.1f} % of held-out pairs in the lexicon's order", flush=True)


def rise_of(values, count=10):
    """Means of the first and the last steps, and the standard error of their difference."""
    first, last = values[:count], values[-count:]
    error = math.sqrt(sum(statistics.variance(part) / len(part) for part in (first, last)))
    return statistics.mean(first), statistics.mean(last), error


def rise_text(first, last, error):
    verdict = "above 3 standard errors" if last - first > 3 * error else "NOT above 3 standard errors"
    return f"{first:.2f} to {last:.2f}, rise {last - first:+.2f}, standard error {error:.2f}: {verdict}"


def print_rises(*runs):
    rises = []
    for run in runs:
        columns = columns_of(run)
        rises.append(rise_of(columns["reward"]))
        text = f"{pathlib.Path(run).name}: reward {rise_text(*rises[-1])}"
        if columns["watched"]:
            text += f"; lexicon, not trained on: {rise_text(*rise_of(columns['watched']))}"
        if columns["kl"]:
            text += f"; kl a token {statistics.mean(columns['kl'][-10:]):.3f} at the end, at most {max(columns['kl']):.3f}"
        if columns["ended"]:
            text += f"; {100 * statistics.mean(columns['ended'][-10:]):.0f} % of answers end"
        print(text, flush=True)
    count = len(rises)
    pooled = (statistics.mean(first for first, _, _ in rises), statistics.mean(last for _, last, _ in rises),
              math.sqrt(sum(error * error for _, _, error in rises)) / count)
    print(f"{pathlib.Path(runs[0]).name.rpartition('-seed')[0]}, {count} seeds: reward {rise_text(*pooled)}", flush=True)


def main():
    commands = dict(curve=write_curve, row=print_row, bar=print_bar, judge=print_judge, rise=print_rises)
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
