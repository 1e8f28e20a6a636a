#!/usr/bin/env bash
# kedge replay and kedge bisect as a user meets them, on short runs with a random model over a tokenizer of a few letters: every step of sound runs
# replays to the bit, and a token, a reward, a bit of a checkpoint that changed is found at its step. replay_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
unset COLUMNS
steps=7 # with checkpoints of steps 3, 6 and 7
keep=(exp_manager.checkpoint_callback_params.save_top_k=-1)
reinforce+=("${keep[@]}" trainer.reinforce.max_steps=$steps trainer.reinforce.val_check_interval=3)
rs+=("${keep[@]}" trainer.rs.max_steps=$steps trainer.rs.val_check_interval=3)
ppo+=("${keep[@]}" trainer.ppo.max_steps=$steps trainer.ppo.val_check_interval=3)
inside+=("${keep[@]}" trainer.ppo.max_steps=$steps trainer.ppo.val_check_interval=3)
made() { # run, command...
  local run=$1
  shift
  "$@" exp_manager.explicit_log_dir="$run" >"$run.log" 2>&1 || { cat "$run.log"; fail "the run $run"; }
}
made slow "${reinforce[@]}" "${rule[@]}"
made best "${rs[@]}" "${rule[@]}"
made inner "${inside[@]}" "${rule[@]}" trainer.ppo.critic_warmup_steps=2
start_server critic.log "${serve_critic[@]}" exp_manager.explicit_log_dir=critic trainer.ppo.port=0
made outer "${ppo[@]}" remote_critic_rm.critic.port="$port"
end_server # a replay needs no server
prints_of() { (cd "$1" && find . -type f -exec sha256sum {} + | sort); }

# Every step of every run, from anywhere, and nothing in the run's folder changes
for run in slow best inner outer; do
  before=$(prints_of $run)
  for step in $(seq 0 $((steps - 1))); do
    (cd / && "$kedge" replay "$folder/$run" --step "$step" --regenerate) >out.txt 2>err.txt || fail "$run, step $step: $(cat out.txt err.txt)"
    grep -q "^step $step replays: every value is equal bit for bit" out.txt || fail "no verdict of $run, step $step: $(cat out.txt)"
    for name in 'weights before' 'prompts and settings' answers 'engine log-probs' rewards advantages 'update loss' 'weights after'; do
      grep -qE "^$name +[1-9][0-9]* +-$" out.txt || fail "$run, step $step: no $name that matches: $(cat out.txt)"
    done
    awk 'length > 80 { exit 1 }' out.txt || fail "a line of more than 80 columns: $(cat out.txt)"
  done
  expect 0 "^$steps steps up to step $((steps - 1)) replay bit for bit$" "$kedge" bisect $run
  [ "$(prints_of $run)" = "$before" ] || fail "$run has changed"
done
expect 0 'from the starting model' "$kedge" replay slow --step 2
expect 0 'from the checkpoint of step 3' "$kedge" replay slow --step 5
expect 0 'step 6 replays' "$kedge" replay slow
expect 0 'note: rewards of the critic \(critic\) are taken from the record' "$kedge" replay outer --step 1
"$kedge" replay slow --step 4 --json 2>/dev/null | python3 -c '
import json, sys
told = json.load(sys.stdin)
assert told["matches"] and told["step"] == 4 and told["start"] == "the checkpoint of step 3", told
assert all(quantity["differ"] == 0 and quantity["compared"] > 0 for quantity in told["quantities"]), told' || fail "--json"

# changed RUN STEP LINE CODE: a copy of the run, `changed`, in whose record Python changed `row`, the object of that line
changed() {
  rm -rf changed
  cp -r "$1" changed
  python3 - "$2" "$3" "$4" <<'PY'
import json, sys
step, line, code = sys.argv[1:]
path = f"changed/rollouts/step-{step}.jsonl"
lines = open(path).read().splitlines()
row = json.loads(lines[int(line) - 1])
exec(code)
lines[int(line) - 1] = json.dumps(row)
open(path, "w").write("\n".join(lines) + "\n")
PY
}
other_token='row["ids"][row["prompt_length"]] = (row["ids"][row["prompt_length"]] + 1) % 6'
for run in slow best inner outer; do
  changed $run 4 6 "$other_token"
  expect 1 "\"verdict\": \"step 4 is the first that does not replay: the record's tokens: from answer 4, token 0 on" "$kedge" bisect changed --json
  expect 1 '^  answer 4, token [0-9]+: recorded ' "$kedge" bisect changed
  expect 1 "^step 4 differs: the record's tokens: the policy samples others" "$kedge" replay changed --step 4 --regenerate
  expect 1 'step 4, on the way to step 5' "$kedge" replay changed --step 5
  expect 0 'step 3 replays' "$kedge" replay changed --step 3
done
for run in slow best inner; do # of what the rule gives again
  changed $run 2 3 'row["reward"] += 1'
  expect 1 "^step 2 is the first that does not replay: the record's rewards" "$kedge" bisect changed
done
changed outer 2 3 'row["reward"] += 1' # and by its own parts
expect 1 "^step 2 is the first that does not replay: the record's rewards" "$kedge" bisect changed
changed inner 5 2 'row["values"][0] += 1'
expect 1 "^step 5 is the first that does not replay: the record's " "$kedge" bisect changed
changed slow 3 1 'row["updates"][1]["loss"] += 1e-12'
expect 1 '^step 3 is the first that does not replay: the update' "$kedge" bisect changed
changed slow 3 1 'row["weights_after"] = "0" * 16'
expect 1 'rollouts/step-4.jsonl: starts with the weights' "$kedge" bisect changed
expect 1 '^step 3 is the first that does not replay: the update' "$kedge" bisect changed
changed slow 3 4 'row["slot"] = 99'
expect 1 '"verdict": "step 3 is the first that does not replay: .*:4: slot 99' "$kedge" bisect changed --json
expect 2 ':4: slot 99 of a step of 4' "$kedge" replay changed --step 3
rm -rf changed && cp -r slow changed && truncate -s -20 changed/rollouts/step-5.jsonl
expect 1 '"verdict": "step 5 is the first that does not replay: .*step-5.jsonl:' "$kedge" bisect changed --json

# flipped RUN FILE PLACE: a copy of the run with one bit of the file changed, in place, PLACE bytes before its end
flipped() {
  rm -rf changed
  cp -r "$1" changed
  python3 - "changed/$2" "$3" <<'PY'
import glob, sys
for path in glob.glob(sys.argv[1]):
    with open(path, "r+b") as file:
        file.seek(-int(sys.argv[2]), 2)
        byte = file.read(1)[0]
        file.seek(-int(sys.argv[2]), 2)
        file.write(bytes([byte ^ 4]))
PY
}
for run in slow best inner outer; do
  for file in model/model.safetensors state/state.safetensors; do
    flipped $run "checkpoints/*step=3-*/$file" 1001
    expect 1 "a checkpoint does not: that of step 3$" "$kedge" bisect changed
    expect 1 "step 3: checkpoints/.*step=3" "$kedge" bisect changed
    said=$("$kedge" bisect changed --json 2>/dev/null)
    grep -q "step=3-[^\"]*/$file: its bytes are not those that were saved" <<<"$said" || fail "$run: $file is not named: $said"
    expect 0 'skipped the checkpoint of step 3' "$kedge" replay changed --step 4
  done
done
flipped inner 'critic/checkpoints/*-last/state/state.safetensors' 1001
expect 1 'critic/checkpoints/' "$kedge" bisect changed

# Steps without a record are generated anew; an older record says less; a fork begins where its parent stood
made some "${reinforce[@]}" "${rule[@]}" rollouts.keep=every:3
expect 0 'step 5 replays' "$kedge" replay some --step 5
expect 0 'note: step 4 has no record: its answers were generated again' "$kedge" bisect some
expect 0 "^$steps steps up to step 6 replay bit for bit" "$kedge" bisect some
cp -r slow older
sed -i -E '1s/,"weights_before".*/}/' older/rollouts/step-*.jsonl
expect 0 'note: an older record' "$kedge" replay older --step 4
expect 0 "^slow, step 4$" "$kedge" show slow --step 4
expect 0 "^older, step 4$" "$kedge" show older --step 4
made branch "${reinforce[@]}" "${rule[@]}" model.optim.lr=2e-3 --fork "$(ls -d slow/checkpoints/*step=3-* | head -n 1)"
expect 0 'from the checkpoint of step 3' "$kedge" replay branch --step 4
expect 0 '^4 steps up to step 6 replay bit for bit' "$kedge" bisect branch
expect 2 'no step 2; its steps are 3 to 6' "$kedge" replay branch --step 2
# A run that goes on with other settings keeps those it had in its checkpoints
cp -r slow longer
made longer "${reinforce[@]}" "${rule[@]}" trainer.reinforce.max_steps=9 model.optim.lr=5e-3
for step in 2 6 7 8; do expect 0 "step $step replays" "$kedge" replay longer --step $step; done
expect 0 '^9 steps up to step 8 replay bit for bit' "$kedge" bisect longer
# Files that changed are named
cp prompts.jsonl kept.jsonl
sed -i '1s/"number": 1}/"number": 2}/' prompts.jsonl
expect 1 'prompts.jsonl has changed since the run was started' "$kedge" replay slow --step 1
expect 1 'the prompts or settings' "$kedge" replay slow --step 1
mv kept.jsonl prompts.jsonl

# What is wrong
expect 2 'nowhere: no such folder' "$kedge" replay nowhere
expect 2 'lm: not the folder of a run' "$kedge" bisect lm
expect 2 'no step 99; its steps are 0 to 6' "$kedge" replay slow --step 99
expect 2 'expected a step number, first or last, found "newest"' "$kedge" replay slow --step newest
expect 2 'no steps 4 to 9; its steps are 0 to 6' "$kedge" bisect slow --from 4 --to 9
expect 0 'replaying steps 4 to 5, from the checkpoint of step 3' "$kedge" bisect slow --from 4 --to 5
made plain "${sft[@]}" trainer.sft.max_steps=2
expect 2 'a run of kedge sft; only those of' "$kedge" replay plain
expect 2 'a run of kedge sft; only those of' "$kedge" bisect plain
expect 2 'missing RUN' "$kedge" replay
mkdir empty && cp slow/config.yaml slow/run.json empty
expect 2 'holds neither records' "$kedge" bisect empty

exit $((failures > 0))
