"""What a run of kedge ppo or reinforce took: the medians of a step and of its phases, without the first step, and its memory. One JSON line."""
import json, statistics, sys
work, name = sys.argv[1:]
run = f"{work}/run-{name}"
steps = {}
for line in map(json.loads, open(f"{run}/metrics.jsonl")):
    steps.setdefault(line["step"], {}).update(line)
first, *later = [numbers for _, numbers in sorted(steps.items()) if "train/step_time" in numbers]
summary = json.load(open(f"{run}/summary.json"))
card = [int(line) for line in open(f"{work}/card-{name}.txt") if line.strip().isdigit()]
def median(key):
    values = [numbers[key] for numbers in later if key in numbers]
    return round(statistics.median(values), 4) if values else None
phases = {key.split("/")[1]: median(key) for key in later[0] if key.startswith("timers/")}
seen = ("rewards", "init_policy_kl", "logprob_gap_mean", "logprob_gap_max", "generation_length", "groups_without_spread", "failed_rewards")
print(json.dumps({"case": name, "s_per_step": median("train/step_time"), "min": round(min(n["train/step_time"] for n in later), 4), "phases": phases,
                  "first_step_s": round(summary["first_step_s"], 2), "first_step_since_start_s": round(first["time"] - float(open(f"{work}/started-{name}").read()), 2),
                  "peak_gib": round(summary["peak_bytes"] / 2**30, 2), "planned_gib": round(summary.get("planned_bytes", 0) / 2**30, 2),
                  "card_gib": round((max(card) - card[0]) / 1024, 2) if card else None, "card_with_others_gib": round(max(card) / 1024, 2) if card else None,
                  "seen": {key: median(f"train_rollouts/{key}") for key in seen}}))
