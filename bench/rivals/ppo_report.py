"""Tables of bench/stories_ppo and bench/sort_learning, from the CSV files that stories_report.py writes.

    ppo_report.py stories FILE.csv SECONDS                            a line: reward, KL, the critic's loss
    ppo_report.py bar     REWARD FILE.csv ...                         the rewards over seeds, and whether each run passes REWARD
    ppo_report.py sort    FILE.csv SECONDS BEFORE.jsonl AFTER.jsonl   a line: right answers in training, and greedily by both models
"""

import csv
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sort_model


class Columns:
    """A CSV's columns as numbers, and what their ends are."""

    def __init__(self, path):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.name = pathlib.Path(path).stem
        self.columns = {name: [float(row[name]) for row in rows] for name in rows[0]}

    def first(self, name, count=5):
        return statistics.mean(self.columns[name][:count])

    def last(self, name, count=5):
        return statistics.mean(self.columns[name][-count:])

    def critic(self):
        first, last = self.first("value_loss"), self.last("value_loss")
        return f"the critic's loss {first:.3g} to {last:.3g}, {'falls' if last < first else 'does NOT fall'}"

    def time(self, seconds):
        return f"{len(self.columns['step'])} steps in {seconds} s, a step {statistics.median(self.columns['seconds'][1:]):.2f} s"


def print_stories(path, seconds):
    run = Columns(path)
    print(f"{run.name}: reward {run.first('reward'):.2f} to {run.last('reward'):.2f}, kl {run.last('kl'):.3f}; {run.critic()}; {run.time(seconds)}",
          flush=True)


def print_bar(bar, *paths):
    rewards = [Columns(path).last("reward") for path in paths]
    passed = sum(reward > float(bar) for reward in rewards)
    print(f"{len(rewards)} seeds: reward {statistics.mean(rewards):.2f} ({min(rewards):.2f} to {max(rewards):.2f}), {passed} of them above {bar}")


def print_sort(path, seconds, before, after):
    run = Columns(path)
    shares = [100 * sort_model.shares(file)[2] for file in (before, after)]
    print(f"{run.name}: right in training {100 * run.first('watched'):.1f} % to {100 * run.last('watched'):.1f} %; held out, greedy, "
          f"{shares[0]:.1f} % to {shares[1]:.1f} %; reward {run.first('reward'):.3f} to {run.last('reward'):.3f}; {run.critic()}; {run.time(seconds)}", flush=True)


def main():
    commands = dict(stories=print_stories, bar=print_bar, sort=print_sort)
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
