#!/usr/bin/env bash
# examples/gsm8k at the scale of a test: its own configurations and script, a random model, the first problems of the real files.
# gsm8k_test.sh KEDGE ASSETS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
example=$(realpath "$here/../../examples/gsm8k")
problems=${KEDGE_ASSETS:-$2}/prompts/gsm8k
[ -e "$problems/train.jsonl" ] || { echo "skipped: no $problems/train.jsonl; KEDGE_ASSETS names the assets folder"; exit 77; }
problems=$(realpath "$problems")
. "$here/../cli/commands_support.sh"
. "$here/chat_support.sh"
make_chat_model lm
mkdir problems
for name in train test; do head -n 48 "$problems/$name.jsonl" >problems/$name.jsonl; done

export KEDGE=$kedge
cpu='trainer.accelerator=cpu trainer.threads=1 exp_manager.create_tensorboard_logger=false'
SFT_ARGS="$cpu trainer.sft.max_steps=3 trainer.sft.val_check_interval=3 model.data.train_ds.global_batch_size=8 model.data.validation_ds.global_batch_size=8"
ARGS="$cpu trainer.reinforce.max_steps=2 trainer.reinforce.val_check_interval=1 trainer.reinforce.num_rollouts_per_prompt=4 model.global_batch_size=8
  model.reinforce.num_rollout_samples=4 model.reinforce.num_val_samples=8 model.reinforce.length_params.max_length=24"
EVAL_ARGS='--limit 4 --threads 1'
export SFT_ARGS ARGS EVAL_ARGS
WARM_UP=1 "$example/run.sh" lm problems out >run.log 2>&1 || { cat run.log; fail 'run.sh'; }
grep -q 'pass@4' run.log || { cat run.log; fail 'no pass@4 in the table'; }
grep -q 'kedge export out/reinforce OUT --best' run.log || fail 'no next commands'
grep -q 'pass@1' <<<"$(head -n 1 out/eval.csv)" || fail 'no pass@1 in the CSV'
for file in sft/model/model.safetensors reinforce/model/model.safetensors reinforce/rollouts/step-1.jsonl; do
  [ -s "out/$file" ] || fail "no out/$file"
done
for name in train_rollouts/rewards/right val_rollouts/rewards train_rollouts/watch/marked; do
  grep -q "\"$name\": " out/reinforce/metrics.jsonl || fail "no $name"
done
python3 - problems out <<'PY' || fail 'the data is not what the files hold'
import json, re, sys
problems, out = sys.argv[1:]
for name in ("train", "test"):
    rows = [json.loads(line) for line in open(f"{problems}/{name}.jsonl")]
    asked = [json.loads(line) for line in open(f"{out}/data/{name}.jsonl")]
    solved = [json.loads(line) for line in open(f"{out}/data/{name}_solved.jsonl")]
    assert len(rows) == len(asked) == len(solved) == 48
    for row, one, other in zip(rows, asked, solved):
        (message,) = one["messages"]
        assert message["role"] == "user" and message["content"].startswith(row["question"] + "\n\n") and one["answer"] == row["answer"], one
        assert [turn["role"] for turn in other["messages"]] == ["user", "assistant"] and other["messages"][0] == message, other
        assert other["messages"][1]["content"] == re.sub("<<.*?>>", "", row["answer"]), other
rollouts = [json.loads(line) for line in list(open(f"{out}/reinforce/rollouts/step-1.jsonl"))[1:]]
assert len(rollouts) == 16 and all(row["reward"] in (0, 1) and row["parts"]["right"] == row["reward"] for row in rollouts)
PY

# Without a warm-up; started again, it is complete and says so.
"$example/run.sh" lm problems again >again.log 2>&1 || { cat again.log; fail 'run.sh without a warm-up'; }
[ -e again/sft ] && fail 'a warm-up that nobody asked for'
"$example/run.sh" lm problems again >again.log 2>&1 || { cat again.log; fail 'run.sh a second time'; }
grep -q 'the run is complete' again.log || { cat again.log; fail 'a complete run was not seen as one'; }

# What is wrong is named
expect 2 'MODEL DATA OUT' "$example/run.sh" lm
expect 2 "MODEL: no config.json in 'nowhere'" "$example/run.sh" nowhere problems out
expect 2 "DATA: no 'nowhere/train.jsonl'" "$example/run.sh" lm nowhere out
make_letters letters
"$kedge" init plain --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
expect 2 "MODEL: 'plain' has no chat template" "$example/run.sh" plain problems out
mkdir other && cp problems/test.jsonl other && echo '{"text": "What is 1 + 1?"}' | cat problems/train.jsonl - >other/train.jsonl
expect 2 'other/train.jsonl has a line that is not .*What is 1 \+ 1' "$example/run.sh" lm other out
expect 2 "no program 'no_such_program'" env KEDGE=no_such_program "$example/run.sh" lm problems out

exit $((failures > 0))
