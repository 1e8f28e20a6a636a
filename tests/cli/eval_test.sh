#!/usr/bin/env bash
# kedge eval as a user meets it, on short runs with a random model over a tokenizer of a few letters. eval_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
unset COLUMNS
export LC_ALL=C
every=(exp_manager.checkpoint_callback_params.save_top_k=-1 trainer.reinforce.max_steps=8 model.optim.lr=3e-3)
watched=(reward.watch.brief.kind=length reward.watch.brief.target=8)
train() { # folder, settings...
  local folder=$1
  shift
  "${reinforce[@]}" "${rule[@]}" "${every[@]}" "$@" exp_manager.explicit_log_dir="$folder" >"$folder.log" 2>&1 || { cat "$folder.log"; fail "the run $folder"; }
}
train full "${watched[@]}"
colder=model.reinforce.sampling_params.temperature=0.8  # of log-probabilities, too
train lora model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=4 "$colder"
eval=("$kedge" eval)

# The curve is the one that the run logged: every number to the last bit, for the draws are a function of seed and prompt, and the checkpoint's own
# state is what is loaded, so nothing is rounded.
as_logged() { # folder
  "${eval[@]}" "$1" --csv "$1.csv" >"$1.txt" 2>"$1.err" || { cat "$1.err"; fail "kedge eval $1"; }
  python3 - "$1" <<'PY' || fail "the numbers of $1 are not those it logged"
import csv, json, sys
run = sys.argv[1]
rows = {int(row["step"]): row for row in csv.DictReader(open(f"{run}.csv"))}
assert list(rows) == [0, 2, 4, 6, 8], list(rows)
logged = {line["step"]: line for line in map(json.loads, open(f"{run}/metrics.jsonl")) if "val_rollouts/rewards" in line}
names = {"reward": "rewards", "rewards/letters": "rewards/letters", "kl": "init_policy_kl", "length": "generation_length", "distinct_2": "distinct_2",
         "finished": "fraction_of_samples_properly_ended", "reward_std": "rewards_std", "logged_reward": "rewards"}
for step in (2, 4, 6, 8):
    for ours, theirs in names.items():
        found, wanted = float(rows[step][ours]), logged[step][f"val_rollouts/{theirs}"]
        assert abs(found - wanted) <= 0, (step, ours, found, wanted)
    if "watch/brief" in rows[step]:
        assert float(rows[step]["watch/brief"]) == logged[step]["val_rollouts/watch/brief"]
assert float(rows[0]["kl"]) < 1e-5 and float(rows[0]["win_rate"]) == 0.5 and float(rows[0]["gain"]) == 0
assert float(rows[8]["kl"]) > 1e-3
assert len({row["reward"] for row in rows.values()}) > 1, "the run has learned nothing"
assert all(row["answers"] == "8" and row["prompts"] == "8" and row["failed"] == "0" for row in rows.values())
PY
}
touch before
as_logged full
as_logged lora
grep -q 'The rewards are those that the run logged at these steps.' full.txt || fail "no word of what was logged: $(cat full.txt)"
grep -qE '^Best: step [2-8]  reward [0-9.]+  wins [0-9]+ % \([0-9]+-[0-9]+ %\) against the start$' full.txt || fail "no best: $(cat full.txt)"
grep -qE '^  kedge export full OUT --step [2-8]$' full.txt || fail "no way to export it: $(cat full.txt)"
grep -q 'watch/brief' full.txt || fail "no watched source: $(cat full.txt)"
grep -q 'step 4: reward ' full.err || fail "no progress on standard error: $(cat full.err)"
grep -q . <<<"$(awk 'length > 80' full.txt)" && fail "a line of more than 80 columns: $(cat full.txt)"
grep -q $'\x1b' full.txt && fail "escape codes in a file"
[ -z "$(find full -newer before)" ] || fail "something was written into the run: $(find full -newer before)"

# Rejection sampling logs the same number under another name.
"${rs[@]}" "${rule[@]}" exp_manager.checkpoint_callback_params.save_top_k=-1 trainer.rs.max_steps=4 exp_manager.explicit_log_dir=best_of >best_of.log 2>&1 || fail "kedge rs"
"${eval[@]}" best_of --json 2>/dev/null | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert [row["step"] for row in rows] == [0, 2, 4], rows
assert rows[0]["logged_reward"] is None and all(row["logged_reward"] == row["reward"] for row in rows[1:]), rows' || fail "a run of kedge rs"

# The same command gives the same files; from any folder.
"${eval[@]}" full --samples 3 --seed 5 --csv a.csv --answers a.jsonl --pass 2 >a.txt 2>/dev/null || fail "--samples"
mkdir -p elsewhere
(cd elsewhere && "${eval[@]}" ../full --samples 3 --seed 5 --csv a.csv --answers a.jsonl --pass 2 >a.txt 2>/dev/null) || fail "from another folder"
cmp a.csv elsewhere/a.csv && cmp a.jsonl elsewhere/a.jsonl || fail "the same command gave other files"
diff <(sed 's/full/RUN/g' a.txt) <(sed 's/\.\.\/full/RUN/g' elsewhere/a.txt) || fail "the same command gave another table"
"${eval[@]}" full --samples 3 --seed 5 --pass 2 --json 2>/dev/null >a.json || fail "--json"
python3 - <<'PY' || fail 'answers, CSV and JSON disagree'
import csv, json, math
rows = list(csv.DictReader(open("a.csv")))
lines = [json.loads(line) for line in open("a.json")]
answers = [json.loads(line) for line in open("a.jsonl")]
assert [int(row["step"]) for row in rows] == [line["step"] for line in lines] == [0, 2, 4, 6, 8]
for row, line in zip(rows, lines):
    for name, value in line.items():
        assert (row[name] == "") if value is None else row[name] == value if name == "policy" else float(row[name]) == value, (name, row[name], value)
close = lambda a, b: math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)  # sums of 24 numbers in another order
start = {(a["prompt_id"], a["sample"]): a["reward"] for a in answers if a["step"] == 0}
for line in lines:
    own = [a for a in answers if a["step"] == line["step"]]
    assert len(own) == line["answers"] == 24
    assert all(a["reward"] == a["response"].count("a") == a["parts"]["letters"] for a in own)
    assert close(sum(a["reward"] for a in own) / 24, line["reward"])
    wins = [(a["reward"] > s) + 0.5 * (a["reward"] == s) for a in own for s in [start[a["prompt_id"], a["sample"]]]]
    assert wins == [a["win"] for a in own]
    assert close(sum(wins) / 24, line["win_rate"]) and line["win_low"] < line["win_rate"] < line["win_high"]
    prompts = {}
    for a in own:
        prompts.setdefault(a["prompt_id"], []).append(a["reward"])
    means = [sum(rewards) / 3 for rewards in prompts.values()]
    mean = sum(means) / 8
    assert close(math.sqrt(sum((m - mean) ** 2 for m in means) / 7 / 8), line["reward_se"])
    assert close(sum(a["reward"] >= 2 for a in own) / 24, line["pass@1"])
    assert close(sum(max(rewards) >= 2 for rewards in prompts.values()) / 8, line["pass@3"])
    assert close(sum(a["length"] for a in own) / 24, line["length"])
    assert close(sum(a["kl"] for a in own) / 24, line["kl"])
    assert line["logged_reward"] == lines[lines.index(line)]["logged_reward"]
first = [a for a in answers if a["step"] == 8 and a["sample"] == 0]
assert len({a["prompt"] for a in first}) > 1
PY

# Which policies
steps_of() { "$@" --json 2>/dev/null | python3 -c 'import json, sys; print(*[json.loads(line)["policy"] for line in sys.stdin])'; }
[ "$(steps_of "${eval[@]}" full --steps 4,8)" = '0 4 8' ] || fail "--steps: $(steps_of "${eval[@]}" full --steps 4,8)"
[ "$(steps_of "${eval[@]}" full --every 4)" = '0 4 8' ] || fail "--every"
[ "$(steps_of "${eval[@]}" full/checkpoints/megatron_gpt-step=6-*)" = '0 6' ] || fail "a checkpoint"
[ "$(steps_of "${eval[@]}" full lora --steps 8)" = 'full 0 full 8 lora 0 lora 8' ] || fail "two runs: $(steps_of "${eval[@]}" full lora --steps 8)"
[ "$(steps_of "${eval[@]}" full --steps 8 --baseline "$(echo full/checkpoints/megatron_gpt-step=4-*)")" = '4 0 8' ] || fail "a checkpoint as baseline"
expect 0 '^Best: ' "${eval[@]}" full --every 4 --greedy --limit 3 --max-new 5
expect 0 '3 prompts x 1 answer of up to 5 tokens, greedy' "${eval[@]}" full --every 4 --greedy --limit 3 --max-new 5
expect 0 'temperature 0.5, top-k 3, top-p 0.9, seed 7$' "${eval[@]}" full --every 8 --temperature 0.5 --top-k 3 --top-p 0.9 --seed 7
expect 0 ' in bf16: ' "${eval[@]}" full --every 8 --dtype bf16
expect 0 '^ +policy +reward' "${eval[@]}" full/model
expect 0 '^Best: (full|lora) 8  reward ' "${eval[@]}" full lora --steps 8
expect 0 '^No room for watch/brief, length, ended, dist-2;$' env COLUMNS=50 "${eval[@]}" full --every 8
grep -q KL <<<"$("${eval[@]}" full --every 8 --no-kl 2>/dev/null)" && fail "--no-kl has a KL"
# Other rewards: the run's with a change, a file's, and with those of the run left alone.
echo '{reward: {sources: {cs: {kind: regex, use: count, pattern: c}}}}' >cs.yaml
"${eval[@]}" full --steps 8 --reward cs.yaml --answers cs.jsonl >/dev/null 2>&1 || fail "--reward"
"${eval[@]}" full --steps 8 reward.sources.letters.pattern=b --answers bs.jsonl >/dev/null 2>&1 || fail "reward.sources as an override"
python3 -c '
import json
for name, letter in (("cs", "c"), ("bs", "b")):
    rows = [json.loads(line) for line in open(name + ".jsonl")]
    assert len(rows) == 16 and all(row["reward"] == row["response"].count(letter) for row in rows), rows' || fail "other rewards"

# Model folders that belong to no run, and adapters
cp -r full/model tuned
cp -r lora/model adapter
plain=("${eval[@]}" lm tuned --prompts val_prompts.jsonl --max-new 16 --threads 1 --device cpu reward.sources.letters.kind=regex reward.sources.letters.use=count
  reward.sources.letters.pattern=a)
expect 0 '^ +policy +reward' "${plain[@]}"
expect 0 '^Best: tuned  reward [0-9.]+  wins [0-9]+ % .* against lm$' "${plain[@]}"
[ "$(steps_of "${plain[@]}" adapter)" = 'lm tuned adapter' ] || fail "folders: $(steps_of "${plain[@]}" adapter)"
# The models of a run's last step are its last checkpoint: with the run's seed and lengths their rewards are the same.
same_reward() { # folder, run, settings...
  local of_folder of_run
  of_folder=$("${eval[@]}" lm "$1" --prompts val_prompts.jsonl --reward as.yaml --max-new 16 --seed 1234 --threads 1 --device cpu 'model.reinforce.sampling_params.end_strings=[]' \
    model.encoder_seq_length=64 "${@:3}" --json 2>/dev/null | tail -n 1 | grep -oE '"(reward|kl)": [^,]*' | tr '\n' ' ')
  of_run=$("${eval[@]}" "$2" --steps 8 --json 2>/dev/null | tail -n 1 | grep -oE '"(reward|kl)": [^,]*' | tr '\n' ' ')
  [ -n "$of_run" ] && [ "$of_folder" = "$of_run" ] || fail "$1 has $of_folder, the last step of $2 $of_run"
}
echo '{reward: {sources: {letters: {kind: regex, use: count, pattern: a}}}}' >as.yaml
same_reward tuned full
same_reward adapter lora "$colder"

# Runs of supervised fine-tuning
"${sft[@]}" trainer.sft.max_epochs=1 exp_manager.explicit_log_dir=sft_run >sft.log 2>&1 || { cat sft.log; fail "kedge sft"; }
expect 0 '^ +step +reward' "${eval[@]}" sft_run --prompts val_prompts.jsonl --reward as.yaml --max-new 16 --threads 1 --device cpu

# A checkpoint that is not whole is passed over and named; the run goes on.
cp -r full broken
truncate -s -1 broken/checkpoints/megatron_gpt-step=4-*/state/state.safetensors
expect 0 'warning .*step=4' "${eval[@]}" broken --every 4
[ "$(steps_of "${eval[@]}" broken --every 4)" = '0 8' ] || fail "a broken checkpoint is not passed over"

# What cannot be
expect 2 'kedge eval: no model none; looked for the folder' "${eval[@]}" none
expect 2 'missing WHAT' "${eval[@]}"
expect 2 'missing the folder of a run, a checkpoint or a model' "${eval[@]}" model.seed=3
expect 2 'full: no checkpoint of step 3; there are 2, 4, 6, 8' "${eval[@]}" full --steps 3
expect 2 '--steps: expected integers separated by commas, found "x"' "${eval[@]}" full --steps x
expect 2 'lm: no prompts are configured; give --prompts FILE' "${eval[@]}" lm --reward as.yaml
expect 2 'lm: no run defines a reward for its answers; give --reward FILE.yaml' "${eval[@]}" lm --prompts val_prompts.jsonl
expect 2 'no.jsonl: ' "${eval[@]}" full --prompts no.jsonl
expect 2 'no.yaml: ' "${eval[@]}" full --reward no.yaml
expect 2 '--greedy and --temperature: give one of them' "${eval[@]}" full --greedy --temperature 1
expect 2 '--pass-k: 4 is not from 1 to 2, the --samples' "${eval[@]}" full --samples 2 --pass 1 --pass-k 4
expect 2 '--pass-k: requires --pass' "${eval[@]}" full --pass-k 1
expect 2 'unknown key "model.sed"; nearest: model.seed' "${eval[@]}" full model.sed=3
expect 2 'unknown flag --sample' "${eval[@]}" full --sample 3
expect 2 '--baseline: lora is a run; give one of its checkpoints' "${eval[@]}" full --baseline lora
cp -r letters other_letters
sed -i 's/"c": 3/"d": 3/' other_letters/tokenizer.json
"$kedge" init other --shape tiny --tokenizer other_letters --threads 1 >/dev/null 2>&1
expect 2 'other: has a different tokenizer from .*lm; the prompts would be different ones to it' "${eval[@]}" full other
"${rm[@]}" trainer.rm.max_epochs=1 exp_manager.explicit_log_dir=judge >judge.log 2>&1 || { cat judge.log; fail "kedge rm"; }
expect 2 'judge: a run of kedge rm, which trains no policy' "${eval[@]}" judge
# A served reward model is asked as in training: the same rewards as by the model in this process, whose folder is given in a file.
start_server judge_server.log "$kedge" serve reward rm_model_file=judge/model inference.port=0
echo "{remote_rm: {port: $port}}" >served.yaml
echo '{reward: {sources: {judge: {kind: model, folder: judge/model}}}}' >here.yaml
rewards_of() { "${eval[@]}" full --steps 8 --reward "$1" --answers rewards.jsonl >/dev/null 2>rewards.err || cat rewards.err; grep -oE '"reward": [^,]*' rewards.jsonl; }
served=$(rewards_of served.yaml)
[ "$(wc -l <<<"$served")" = 16 ] && [ "$served" = "$(rewards_of here.yaml)" ] || fail "served: $served; here: $(rewards_of here.yaml)"
end_server
# The rewards of a critic's server belong to the run that trains it.
mkdir critics
cp -r full/checkpoints full/run.json critics/
sed -i 's/"reinforce"/"ppo"/' critics/run.json
"$kedge" config ppo --yaml | sed "s|restore_from_path: ???|restore_from_path: $PWD/lm|" >critics/config.yaml
expect 2 'came from its critic.s server, which only serves the run that trains it; configure another reward: --reward FILE.yaml' "${eval[@]}" critics \
  'model.data.data_prefix={train: [val_prompts.jsonl], validation: [val_prompts.jsonl], test: [val_prompts.jsonl]}' remote_critic_rm.combine_rm_and_critic_server=true
# A place that cannot be written to is told before anything is computed.
expect 1 'nowhere' "${eval[@]}" full --csv nowhere/curve.csv
# A policy alone is held against nobody.
"${eval[@]}" lm --prompts val_prompts.jsonl --reward as.yaml --max-new 8 --threads 1 --device cpu >alone.txt 2>&1 || fail "one model alone: $(cat alone.txt)"
grep -qE 'win %|KL|Best' alone.txt && fail "a policy alone has a baseline: $(cat alone.txt)"
# A reward server that is away is waited for as in training, and then named.
away=$(free_port)
expect 1 "reward server" "${eval[@]}" full --steps 8 "reward.sources={far: {kind: server, url: 'http://127.0.0.1:$away', wait_limit: 0.5}}" reward.retries=0
exit $((failures > 0))
