#!/usr/bin/env bash
# Rows as verl has them, judged by `kind: math` and by functions written for verl and OpenRLHF, through the program; metrics under others' names.
# graders_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
worker=$(realpath "$here/../../examples/python_reward/reward_worker.py")
. "$here/commands_support.sh"
. "$here/../examples/chat_support.sh"
make_chat_model lm
python3 - <<'PY'
import json
with open("rows.jsonl", "w") as rows:
    for i in range(8):
        truth = "\\frac{1" if i == 3 else str(i)  # the fourth cannot be read
        rows.write(json.dumps({"data_source": "sums", "prompt": [{"role": "user", "content": f"{i} + 0?"}], "ability": "math",
                               "reward_model": {"style": "rule", "ground_truth": truth}, "extra_info": {"index": i}}) + "\n")
PY
cat >run.yaml <<'YAML'
trainer: {reinforce: {max_steps: 2, max_epochs: 5, val_check_interval: 0, num_rollouts_per_prompt: 2}, accelerator: cpu, threads: 1}
pretrained_checkpoint: {restore_from_path: lm}
reward:
  sources:
    right: {kind: math}
    brief: {kind: length, max_length: 16, window: 8, weight: 0.5}
model:
  encoder_seq_length: 256
  global_batch_size: 16
  reinforce: {num_rollout_samples: 8, num_val_samples: 8, length_params: {max_length: 16}}
  data: {data_prefix: {train: [rows.jsonl], validation: [rows.jsonl], test: [rows.jsonl]}}
exp_manager: {create_tensorboard_logger: false}
YAML
run() { "$kedge" reinforce run.yaml exp_manager.explicit_log_dir="$@"; }

# A row whose answer cannot be read is masked, counted and named; the others are trained on.
expect 0 'reward.sources.right: prompt 3: the field "reward_model.ground_truth" of its row holds no answer that can be compared' \
  run math exp_manager.metric_names=trl
expect 1 'prompt 3: the field "reward_model.ground_truth"' run strict reward.on_failure=fail
expect 0 'done: step 2 of 2' run verl exp_manager.metric_names=verl
cat >score.py <<'PY'
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == "sums" and 0 <= extra_info["index"] < 8
    return {"score": float(ground_truth == str(extra_info["index"])), "empty": not solution_str}


def reward_func(queries, prompts, labels):
    assert all(query.startswith(prompt) for query, prompt in zip(queries, prompts))
    return [float(label.isdigit()) for label in labels]
PY
for function in compute_score reward_func; do
  expect 0 'done: step 2 of 2' run "$function" '~reward.sources' \
    "reward.sources={mine: {kind: command, command: [python3, '$worker', 'score.py:$function'], batch: 4}}"
done

python3 - <<'PY' || fail 'the metrics are not what the rewards were'
import json
def lines(run):
    return [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
for line in lines("math"):
    if "train_rollouts/rewards" not in line:
        assert line["loss"] == line["train_optim/loss"] and line["learning_rate"] == line["train_optim/lr"], line
        continue
    assert line["train_rollouts/failed_rewards"] == 2, line  # both answers to the fourth prompt
    assert line["reward"] == line["train_rollouts/rewards"] and line["rewards/right/mean"] == line["train_rollouts/rewards/right"], line
    assert line["reward_std"] == line["train_rollouts/rewards_std"], line
    assert line["completions/clipped_ratio"] == 1 - line["train_rollouts/fraction_of_samples_properly_ended"], line
    assert line["completions/min_length"] <= line["completions/mean_length"] <= line["completions/max_length"] <= 16, line
    assert -1 <= line["train_rollouts/rewards/brief"] <= 0, line
assert any("critic/score/mean" in line and "response_length/mean" in line for line in lines("verl"))
for run in ("compute_score", "reward_func"):
    means = [line["train_rollouts/rewards"] for line in lines(run) if "train_rollouts/rewards" in line]
    assert means == [7 / 8, 7 / 8], (run, means)
assert all("train_rollouts/rewards/mine/empty" in line for line in lines("compute_score") if "train_rollouts/rewards" in line)
PY

# What is wrong is named
expect 2 'reward.sources.brief.window: max_length requires it' run wrong '~reward.sources.brief.window'
expect 2 'reward.sources.right.pattern: a reward of kind math does not use it' run wrong reward.sources.right.pattern=x
expect 2 'exp_manager.metric_names: expected kedge \| trl \| verl, found tlr' run wrong exp_manager.metric_names=tlr
exit $((failures > 0))
