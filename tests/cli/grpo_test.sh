#!/usr/bin/env bash
# kedge grpo and rloo as a user meets them: recipes, names of other systems, plan, inspect, replay, temperatures, dynamic sampling. grpo_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/grpo_support.sh"
# value FOLDER KEY: of its settings.
value() { python3 - "$@" <<'PY'
import subprocess, sys
folder, key = sys.argv[1:]
path, found = key.split("."), None
depth = 0
for line in open(f"{folder}/config.yaml"):
    level, text = (len(line) - len(line.lstrip())) // 2, line.strip()
    if level < depth: break
    if level == depth and text.split(":")[0] == path[depth]:
        if depth == len(path) - 1: print(text.split(": ", 1)[1]); break
        depth += 1
PY
}
is() { [ "$(value "$1" "$2")" = "$3" ] || fail "$1: $2 is $(value "$1" "$2"), not $3"; }

expect 0 'done: step 20 of 20, model in whole/model' "${grpo[@]}" exp_manager.explicit_log_dir=whole
grep -q 'invariant\|The run ends here\|the loss covers' whole/log.txt && fail "whole: $(cat whole/log.txt)"
is whole trainer.grpo.baseline group_norm
is whole trainer.grpo.loss_norm tokens
is whole trainer.grpo.initial_policy_kl_penalty 0.0
for name in train_optim/{ratio,ratio_clamped,clip_fraction,loss} train_rollouts/{rewards,groups_without_spread,baseline_mean}; do
  grep -q "\"$name\": -\?[0-9]" whole/metrics.jsonl || fail "no $name"
done
expect 0 'kedge grpo, 20 of 20 steps, complete' "$kedge" inspect whole
expect 0 'step 19 replays: every value is equal bit for bit' "$kedge" replay whole --regenerate
expect 0 'whole, step 19' "$kedge" show whole --limit 1
expect 0 'Best: step' "$kedge" eval whole --limit 4
expect 0 '"algorithm":.*"grpo"' "$kedge" plan grpo "${online[@]}" "${for_grpo[@]}" "${rule[@]}" model.global_batch_size=8 --json --no-time
expect 0 'done: step 20 of 20, model in rloo/model' "${rloo[@]}" exp_manager.explicit_log_dir=rloo
is rloo trainer.rloo.num_rollouts_per_prompt 2
expect 0 'kedge rloo, 20 of 20 steps, complete' "$kedge" inspect rloo
expect 0 'step 19 replays: every value is equal bit for bit' "$kedge" replay rloo --regenerate

# Recipes: none is stopped by an invariant, and the command line has the last word.
for recipe in "${recipes[@]}"; do
  expect 0 'done: step 6 of 6' "$kedge" grpo --recipe "$recipe" "${online[@]}" "${for_grpo[@]}" "${rule[@]}" model.global_batch_size=8 trainer.grpo.max_steps=6 \
    exp_manager.explicit_log_dir="recipe_$recipe"
  is "recipe_$recipe" trainer.grpo.num_rollouts_per_prompt 4
  grep -qE 'warning.*(ratios|weights|invariants)' "recipe_$recipe/log.txt" && fail "$recipe: $(cat "recipe_$recipe/log.txt")"
  expect 0 'step 5 replays: every value is equal bit for bit' "$kedge" replay "recipe_$recipe"
  expect 0 "^  $recipe  " "$kedge" grpo --help
done
is recipe_dapo trainer.grpo.ratio_clip_max 0.28
is recipe_dapo trainer.grpo.use_dynamic_sampling true
is recipe_gspo trainer.grpo.sequence_level_importance_ratios '"true"'
expect 0 'trainer.grpo.ratio_clip_max +number or null +0.28' "$kedge" config grpo --recipe dapo
expect 0 '  dapo +DAPO: ' "$kedge" grpo --help
expect 0 'prompts x 16 answers' "$kedge" plan grpo --recipe dapo "${online[@]}" "${rule[@]}" model.grpo.num_rollout_samples=4 model.grpo.length_params.max_length=16 --no-time
expect 2 'kedge grpo has no recipe "dappo".*dapo' "$kedge" grpo --recipe dappo
expect 2 'kedge sft has no recipes' "$kedge" sft --recipe dapo

# Other systems' words for the same keys
expect 0 'done: step 2 of 2' "${grpo[@]}" exp_manager.explicit_log_dir=words trainer.grpo.max_steps=2 trainer.grpo.loss_type=dr_grpo trainer.grpo.epsilon=0.1 \
  trainer.grpo.epsilon_high=0.3 trainer.grpo.delta=2.5 trainer.grpo.beta=0.01 trainer.grpo.importance_sampling_level=sequence \
  trainer.grpo.filter_groups.enable=true trainer.grpo.rollout.n=2 '~trainer.grpo.num_rollouts_per_prompt' model.grpo.max_completion_length=16 \
  trainer.grpo.vllm_importance_sampling_mode=token_truncate
is words trainer.grpo.loss_norm constant
is words trainer.grpo.ratio_eps 0.1
is words trainer.grpo.reference_policy_kl_penalty 0.01
grep -q '"train_optim/loss_kl": [0-9]' words/metrics.jsonl || fail 'no KL of the loss'
grep -q '"train_rollouts/rollout_correction_mean": 1.0' words/metrics.jsonl || fail 'no correction, or none that is 1 on a CPU'

# Temperatures: ratios are 1 and the gap is 0; at 1 both settings are the same bits; a run that began before the key existed stays as it was.
for temperature in 0.6 1.5; do
  hot=(model.grpo.sampling_params.temperature=$temperature trainer.grpo.max_steps=4 trainer.grpo.reference_policy_kl_penalty=0.01)
  expect 0 'done: step 4 of 4' "${grpo[@]}" "${hot[@]}" exp_manager.explicit_log_dir="hot_$temperature"
  python3 - "hot_$temperature" <<'PY' || fail "at $temperature"
import json, sys
lines = [json.loads(line) for line in open(f"{sys.argv[1]}/metrics.jsonl")]
steps = [line for line in lines if "train/step_time" in line]
assert len(steps) == 4 and all(line["train_rollouts/logprob_gap_max"] == 0 for line in steps), steps
firsts = [json.loads(open(f"{sys.argv[1]}/rollouts/step-{step}.jsonl").readline())["updates"][0] for step in range(4)]
assert all(first["ratio"] == 1 and first["clip_fraction"] == 0 for first in firsts), firsts
PY
  expect 0 'step 3 replays: every value is equal bit for bit' "$kedge" replay "hot_$temperature" --regenerate
done
# forget RUN KEY VALUE: makes the run's files as a program wrote them that does not know the key, whose value is VALUE. An old record has no hash.
forget() {
  python3 - "$@" <<'PY'
import glob, re, sys
run, key, value = sys.argv[1:]
for path, pattern in [*((path, rf'\s*"{key}":\s*"?{value}"?,|,\s*"hash":\s*"[0-9a-f]{{16}}"') for path in glob.glob(f"{run}/checkpoints/*/meta.json")),
                      (f"{run}/config.yaml", rf"\n *{key}: {value}")]:
    text = open(path).read()
    changed = re.sub(pattern, "", text)
    assert changed != text, path
    open(path, "w").write(changed)
PY
}
old=(model.grpo.sampling_params.temperature=0.6 model.grpo.logprob_temperature=one)
expect 0 'done: step 4 of 4' "${grpo[@]}" "${old[@]}" trainer.grpo.max_steps=4 exp_manager.explicit_log_dir=old
cp -r old older
expect 0 'done: step 6 of 6' "${grpo[@]}" "${old[@]}" trainer.grpo.max_steps=6 exp_manager.explicit_log_dir=old
forget older logprob_temperature one
expect 0 'step 3 replays: every value is equal bit for bit' "$kedge" replay older
expect 0 'logprob_temperature=one: the run began before this key existed' "${grpo[@]}" model.grpo.sampling_params.temperature=0.6 trainer.grpo.max_steps=6 \
  exp_manager.explicit_log_dir=older
same_online old older
is older model.grpo.logprob_temperature one

# Prompts computed once: the same responses and rewards, losses within 1e-5, and less to compute. A run that began before the key existed stays as it was.
for shares in true false; do
  expect 0 'done: step 4 of 4' "${grpo[@]}" trainer.grpo.max_steps=4 model.grpo.share_prompts=$shares exp_manager.explicit_log_dir="share_$shares"
  expect 0 'step 3 replays: every value is equal bit for bit' "$kedge" replay "share_$shares" --regenerate
done
python3 - <<'PY' || fail 'shared prompts'
import json
runs = [[json.loads(line) for line in open(f"share_{shares}/metrics.jsonl")] for shares in ("true", "false")]
losses = [[line["train_optim/loss"] for line in run if "train_optim/loss" in line] for run in runs]
rewards = [[line["train_rollouts/rewards"] for line in run if "train_rollouts/rewards" in line] for run in runs]
assert len(losses[0]) == len(losses[1]) >= 4 and all(abs(a - b) < 1e-5 for a, b in zip(*losses)), losses
assert rewards[0] == rewards[1], rewards
PY
cp -r share_false before
expect 0 'done: step 6 of 6' "${grpo[@]}" trainer.grpo.max_steps=6 model.grpo.share_prompts=false exp_manager.explicit_log_dir=share_false
forget before share_prompts false
expect 0 'step 3 replays: every value is equal bit for bit' "$kedge" replay before
expect 0 'share_prompts=false: the run began before this key existed' "${grpo[@]}" trainer.grpo.max_steps=6 exp_manager.explicit_log_dir=before
same_online share_false before
is before model.grpo.share_prompts false

# A file of NeMo-Aligner's, whose log-probabilities have no temperature
echo 'model: {reinforce: {sampling_params: {temperature: 0.7, top_p: 1.0}}}' >nemo.yaml
expect 0 '^converted \(1 key\)$' "$kedge" config reinforce --keys nemo.yaml
sed 's/0.7/1.0/' nemo.yaml >nemo_one.yaml
expect 0 '^honoured \(2 keys\)$' "$kedge" config reinforce --keys nemo_one.yaml

# Dynamic sampling: prompts are counted, and every group of the step has a spread.
expect 0 'done: step 6 of 6' "${grpo[@]}" trainer.grpo.max_steps=6 "${dynamic[@]}" exp_manager.explicit_log_dir=dynamic
python3 - dynamic <<'PY' || fail 'dynamic sampling'
import json, sys
folder = sys.argv[1]
steps = [line for line in map(json.loads, open(f"{folder}/metrics.jsonl")) if "train/step_time" in line]
consumed = 0
for step, line in enumerate(steps):
    consumed += 4 * line["train_rollouts/dynamic_sampling_batches"]
    assert line["train_rollouts/consumed_samples"] == consumed, line
    groups = {}
    for row in list(map(json.loads, open(f"{folder}/rollouts/step-{step}.jsonl")))[1:]:
        groups.setdefault(row["slot"], []).append(row["reward"])
    assert len(groups) == 4 and all(len(set(rewards)) > 1 for rewards in groups.values()), groups
assert consumed > 24, "no group was replaced"
print(f"dynamic sampling: {consumed:g} prompts in 6 steps")
PY
expect 0 '^6 steps up to step 5 replay' "$kedge" bisect dynamic
expect 0 'step 5 replays: every value is equal bit for bit' "$kedge" replay dynamic --regenerate
exit $((failures > 0))
