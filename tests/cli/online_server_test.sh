#!/usr/bin/env bash
# Online training with a reward server: one that works, one that misbehaves, one that goes away. online_server_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
"$kedge" init judge --shape tiny --tokenizer letters --num-labels 1 --seed 3 --threads 1 >/dev/null 2>&1
serve_judge=("$kedge" serve reward rm_model_file=judge trainer.accelerator=cpu trainer.precision=32 trainer.threads=1)
data='model.data.data_prefix={train: [prompts.jsonl], validation: [val_prompts.jsonl], test: [val_prompts.jsonl]}'

# The command lines of published descriptions
start_server judge.log "${serve_judge[@]}" inference.port=0
export OMP_NUM_THREADS=1
expect 0 'done: step 1 of 1, model in kedge_runs/rs/model' "$kedge" train_gpt_rs_actor pretrained_checkpoint.restore_from_path=lm \
  model.rs.num_rollouts_per_prompt=4 model.rs.top_n_rollouts=1 remote_rm.host=localhost remote_rm.port="$port" "$data"
expect 0 'done: step 1 of 1, model in kedge_runs/reinforce/model' "$kedge" train_gpt_reinforce_actor pretrained_checkpoint.restore_from_path=lm \
  trainer.reinforce.num_rollouts_per_prompt=4 trainer.reinforce.reinforce_epochs=1 trainer.reinforce.discount_factor=1.0 \
  remote_rm.host=localhost remote_rm.port="$port" "$data"
expect 0 'done: step 1 of 1' "$kedge" train_gpt_rs_actor "$here/../../configs/reference/gpt_rs_actor.yaml" pretrained_checkpoint.restore_from_path=lm \
  trainer.accelerator=cpu exp_manager.explicit_log_dir=reference model.encoder_seq_length=512 model.rs.num_rollout_samples=32 model.global_batch_size=32 \
  remote_rm.reward_model.ip=localhost remote_rm.reward_model.port="$port" "$data"
unset OMP_NUM_THREADS

# Rewards that come over the wire are those of kedge score, to the bit
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=served remote_rm.host=localhost remote_rm.port="$port"
expect 0 'done: step 20 of 20' "${rs[@]}" exp_manager.explicit_log_dir=rs_served remote_rm.host=localhost remote_rm.port="$port" remote_rm.pad_to_length=64
scored() { # folder
  python3 - "$1" >rows.jsonl <<'PY'
import json, sys
for step in range(20):
    for line in list(open(f"{sys.argv[1]}/rollouts/step-{step}.jsonl"))[1:]:
        row = json.loads(line)
        assert row["error"] is None and row["parts"] == {"remote_rm": row["reward"]}, row
        print(json.dumps({"ids": row["ids"], "served": row["reward"]}))
PY
  "$kedge" score --model judge --input rows.jsonl --threads 1 >scored.jsonl 2>/dev/null
  python3 - "$1" <<'PY' || fail "the rewards of $1 are not those of kedge score"
import json, struct, sys
bits = lambda value: struct.pack("<f", value)
rows = list(map(json.loads, open("scored.jsonl")))
assert len(rows) == 320 and len({row["served"] for row in rows}) > 50
different = [row for row in rows if bits(row["served"]) != bits(row["reward"])]
print(f"{sys.argv[1]}: {len(rows)} rewards, {len(different)} of them not those of kedge score")
assert not different, different[:3]
PY
}
scored served
scored rs_served
# The same model in this process, and the server as a source by its address, say the same.
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=local reward.sources.remote_rm.kind=model reward.sources.remote_rm.folder=judge
cmp served/model/model.safetensors local/model/model.safetensors || fail 'a reward model in this process teaches something else'
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=named reward.sources.remote_rm.kind=server \
  "reward.sources.remote_rm.url=http://localhost:$port"
cmp served/model/model.safetensors named/model/model.safetensors || fail 'a source of kind server teaches something else'
expect 1 'HTTP 404: .*nobody' "${rs[@]}" exp_manager.explicit_log_dir=unknown remote_rm.port="$port" remote_rm.reward_model.name=nobody
end_server

# A server that is killed in the middle is named and waited for, and nothing is lost
port=$(free_port)
judge_at=("${serve_judge[@]}" inference.port="$port")
long=("${reinforce[@]}" trainer.reinforce.max_epochs=6 remote_rm.host=localhost remote_rm.port="$port")
start_server judge.log "${judge_at[@]}"
expect 0 'done: step 60 of 60' "${long[@]}" exp_manager.explicit_log_dir=undisturbed
"${long[@]}" exp_manager.explicit_log_dir=disturbed >disturbed.log 2>&1 &
run=$!
wait_for_step disturbed $run 5
end_server
for _ in $(seq 400); do
  grep -q 'is unreachable' disturbed.log && break
  sleep 0.05
done
grep -qE "the reward server localhost:$port is unreachable \(.*\); waited [0-9]+ s, limit 6000 s" disturbed.log ||
  fail "it does not say what it waits for: $(cat disturbed.log)"
kill -0 $run 2>/dev/null || fail 'it did not wait'
start_server judge.log "${judge_at[@]}"
wait $run || fail "a server that went away ends the run: $(cat disturbed.log)"
grep -qE "the reward server localhost:$port is back after" disturbed.log || fail "it does not say that the server is back: $(cat disturbed.log)"
same_online undisturbed disturbed
end_server
# A signal ends the wait for one that is away, and the run goes on later as if nothing had been. First one that never was there.
signalled() { # SIGNAL CODE CHECKPOINT: the run waits in signalled.log; it ends with this code, and leaves the folder as it was
  for _ in $(seq 400); do
    grep -q 'is unreachable' signalled.log && break
    sleep 0.05
  done
  while compgen -G 'signalled/checkpoints/.unfinished-*' >/dev/null; do sleep 0.01; done
  [ -d signalled/checkpoints ] && find signalled/checkpoints -type f -exec sha256sum {} + | sort >before.txt
  kill -s "$1" $run
  wait $run
  local code=$?
  [ $code = "$2" ] || fail "SIG$1 during a wait: exit code $code"
  grep -qE "SIG$1 received while the reward server localhost:$port \\(.*\\) was unavailable; this step is discarded, $3" signalled.log ||
    fail "SIG$1 during a wait: $(cat signalled.log)"
  [ -f signalled/summary.json ] && fail "SIG$1 during a wait leaves a summary"
  [ ! -d signalled/checkpoints ] || find signalled/checkpoints -type f -exec sha256sum {} + | sort | cmp - before.txt || fail "SIG$1 during a wait changes checkpoints"
}
begin_signalled() {
  "${long[@]}" exp_manager.explicit_log_dir=signalled >signalled.log 2>&1 &
  run=$!
}
begin_signalled
signalled TERM 143 'and there is no checkpoint yet'
start_server judge.log "${judge_at[@]}"
begin_signalled
wait_for_step signalled $run 5
end_server
signalled INT 130 'the last checkpoint, of step [0-9]+, is kept'
begin_signalled
signalled USR1 138 'the last checkpoint, of step [0-9]+, is kept'
start_server judge.log "${judge_at[@]}"
begin_signalled
wait $run || fail "a run that a signal ended does not go on: $(cat signalled.log)"
grep -q 'resumed from signalled/checkpoints/' signalled.log || fail "it does not go on: $(cat signalled.log)"
same_online undisturbed signalled
# One that is there and takes its time is waited for: the step ends and is saved.
kill -STOP $server
"${long[@]}" exp_manager.explicit_log_dir=slow >slow.log 2>&1 &
run=$!
for _ in $(seq 400); do
  grep -q 'steps 0 to' slow.log && break
  sleep 0.05
done
kill -TERM $run
sleep 0.5
kill -0 $run 2>/dev/null || fail 'a server that is slow is not waited for'
kill -CONT $server
wait $run
code=$?
[ $code = 143 ] || fail "SIGTERM while a server is slow: exit code $code: $(cat slow.log)"
grep -q 'SIGTERM received: the run ends after step 1' slow.log || fail "the step does not end: $(cat slow.log)"
expect 0 'resumed from slow/checkpoints/' "${long[@]}" exp_manager.explicit_log_dir=slow
same_online undisturbed slow
end_server
# One that was never there: as long as is said, and no longer.
expect 1 "the reward server localhost:$port did not become ready within 1 s .*reward.sources.judge.url" "${rs[@]}" exp_manager.explicit_log_dir=away \
  reward.sources.judge.kind=server "reward.sources.judge.url=http://localhost:$port" reward.sources.judge.wait_limit=1

# Servers that misbehave. First one that does not, and does what the rule does.
start_server stand_in.log python3 "$here/reward_stand_in.py"
asks() { # model, folder, setting...
  local model=$1 folder=$2
  shift 2
  "${reinforce[@]}" exp_manager.explicit_log_dir="$folder" remote_rm.host=127.0.0.1 remote_rm.port="$port" remote_rm.reward_model.name="$model" "$@"
}
expect 0 'done: step 20 of 20' "${reinforce[@]}" "${rule[@]}" exp_manager.explicit_log_dir=by_rule
expect 0 'does not report its tokenizer and accepts no ids, so it gets text' asks reward_model foreign
cmp by_rule/model/model.safetensors foreign/model/model.safetensors || fail 'the same rewards by a server teach something else'
expect 0 "does not report its tokenizer, so it gets the policy's ids, with the token that ends a response" asks ids_only foreign_ids
cmp by_rule/model/model.safetensors foreign_ids/model/model.safetensors || fail 'the same rewards by a server that takes ids teach something else'
expect 1 'the reward server 127.0.0.1:1 did not become ready within 1 s' "${reinforce[@]}" exp_manager.explicit_log_dir=nobody remote_rm.host=127.0.0.1 remote_rm.port=1 remote_rm.wait_limit=1
few=(trainer.reinforce.max_steps=4 model.optim.weight_decay=0)
masked() { # folder, answers of a step without a reward
  python3 - "$@" <<'PY' || fail "$1: not $2 answers of a step without a reward"
import json, sys
folder, wanted = sys.argv[1], sys.argv[2]
def refuse(text):
    raise ValueError(f"{text} is not JSON")
metrics = [json.loads(line, parse_constant=refuse) for line in open(f"{folder}/metrics.jsonl")]
steps = [line for line in metrics if "train/step_time" in line]
assert len(steps) == 4
for line in steps:
    rows = list(map(json.loads, list(open(f"{folder}/rollouts/step-{line['step']}.jsonl"))[1:]))
    failed = [row for row in rows if row["error"] is not None]
    assert line.get("train_rollouts/failed_rewards", 0) == len(failed), line
    assert all(not row["trains"] for row in failed)
    assert wanted == "some" or len(failed) == int(wanted), len(failed)
    good = [row["reward"] for row in rows if row["error"] is None]
    if good:
        assert abs(line["train_rollouts/rewards"] - sum(good) / len(good)) < 1e-9, line
if wanted == "some":
    counts = [line.get("train_rollouts/failed_rewards", 0) for line in steps]
    assert 0 < sum(counts) < 64, counts
PY
}
# Where not a single one comes, the run ends, unless it is told not to.
expect 1 'step 0: every reward of the step failed \(16 of 16\), so nothing can be learned; the first: reward.sources.remote_rm: prompt [0-9]+: nan of the reward server' \
  asks nan all_failed "${few[@]}"
grep -q 'trainer.reinforce.health.invariants=warn would continue' all_failed/log.txt || fail 'no word on how to go on'
goes_on=trainer.reinforce.health.invariants=warn
expect 0 'rows got no reward; the first: reward.sources.remote_rm: prompt [0-9]+: nan of the reward server 127.0.0.1:[0-9]+ gave -?nan' asks nan nan "${few[@]}" $goes_on
masked nan 16
cmp lm/model.safetensors nan/model/model.safetensors || fail 'something was learned without rewards'
expect 0 'rows got no reward; the first: .*error of the reward server .*: HTTP 500: the judge is not at home' asks error error "${few[@]}" $goes_on
masked error 16
expect 0 'rows got no reward; .*: HTTP 500: the judge is not at home' asks picky picky "${few[@]}"
masked picky some
expect 0 'done: step 4 of 4' "${rs[@]}" exp_manager.explicit_log_dir=rs_nan trainer.rs.max_steps=4 model.optim.weight_decay=0 trainer.rs.health.invariants=warn \
  remote_rm.host=127.0.0.1 remote_rm.port="$port" remote_rm.reward_model.name=nan
masked rs_nan 16
cmp lm/model.safetensors rs_nan/model/model.safetensors || fail 'something was learned without rewards'
# What failed is asked for again when the run is, and by other settings everything is.
for other in error reward_model; do
  rm -rf again && mkdir again && cp -r error/rollouts again/
  expect 0 'done: step 4 of 4' asks $other again "${few[@]}" $goes_on
  grep -q 'reusing the answers recorded before' again/log.txt && fail "rewards of a server that failed are used again ($other)"
done
masked again 0
# Answers that no server should give end the run, whatever on_failure says.
expect 1 'wide of the reward server .*: expected one FP32 reward for each of [0-9]+ rows, found FP32 \[[0-9]+,2\]; a server with several attributes must merge them' \
  asks wide wide "${few[@]}"
expect 1 'expected one FP32 reward for each of ([0-9]+) rows, found FP32 ' asks short short "${few[@]}"
expect 1 'expected one FP32 reward for each of [0-9]+ rows, found INT32 ' asks whole_numbers whole_numbers "${few[@]}"
expect 1 'nameless of the reward server .*: the answer has no rewards' asks nameless nameless "${few[@]}"
expect 1 'nonsense of the reward server .*: an invalid reply' asks nonsense nonsense "${few[@]}"
# on_failure=fail ends it, and what was saved before is good to go on from.
expect 1 '[0-9]+ of [0-9]+ rows got no reward; the first: .*prompt [0-9]+: .*gave -?nan' asks nan strict "${few[@]}" reward.on_failure=fail
expect 1 'rows got no reward; the first: .*HTTP 500: the judge is not at home' asks late_error late reward.on_failure=fail
[ -d "$(last_of late)" ] || fail 'nothing was saved before the server failed'
expect 0 'resumed from late/checkpoints/' asks reward_model late reward.on_failure=fail
cmp foreign/model/model.safetensors late/model/model.safetensors || fail 'a run that a server ended goes on otherwise'
diff <(numbers_of foreign) <(numbers_of late) >/dev/null || fail 'its numbers differ'
end_server

exit $((failures > 0))
