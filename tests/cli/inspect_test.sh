#!/usr/bin/env bash
# kedge inspect and export for runs and checkpoints, as someone meets them who did not make the run. inspect_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
unset COLUMNS
made() { # folder, command...: a run that must end well
  local name=$1
  shift
  "$@" exp_manager.explicit_log_dir="$name" >"$name.log" 2>&1 || { cat "$name.log"; fail "the run $name"; }
}
made online "${reinforce[@]}" "${rule[@]}" reward.watch.brief.kind=length reward.watch.brief.target=4 trainer.reinforce.save_interval=2 model.optim.lr=1e-2
made whole "${sft[@]}" trainer.sft.max_steps=12
made adapted "${sft[@]}" trainer.sft.max_steps=8 model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2
made judge "${rm[@]}" trainer.rm.max_steps=8
inspect=("$kedge" inspect)

# A run, in a page
expect 0 '^online: kedge reinforce, 20 of 20 steps, complete$' "${inspect[@]}" online
expect 0 '^began with +lm \(unchanged\)$' "${inspect[@]}" online
expect 0 '^network +llama, 99,520 parameters in 2 layers of 64$' "${inspect[@]}" online
expect 0 '^trained +all weights, fp32, cpu, 1 rank, lr 0.01, seed 1234$' "${inspect[@]}" online
expect 0 '^(data)? +prompts.jsonl \(40 lines, unchanged\)$' "${inspect[@]}" online
expect 0 '^rewards +letters \(regex\), pattern a$' "${inspect[@]}" online
expect 0 '^ +watched, not trained on: brief \(length\)' "${inspect[@]}" online
expect 0 '^reward  +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+  ' "${inspect[@]}" online
expect 0 '^watched brief ' "${inspect[@]}" online
expect 0 '^validation reward ' "${inspect[@]}" online
expect 0 'kedge show online ' "${inspect[@]}" online
expect 0 '^checkpoints  .*step 20 \(.*last' "${inspect[@]}" online
expect 0 '^loss  +[0-9.]+ +[0-9.]+' "${inspect[@]}" whole
expect 0 '^validation loss ' "${inspect[@]}" whole
expect 0 'In short: loss fell from .*: better, by more than its noise|In short: loss' "${inspect[@]}" whole
expect 0 '; LoRA of rank 2, 1,280' "${inspect[@]}" adapted
expect 0 '^trained +the adapters, ' "${inspect[@]}" adapted
expect 0 '^accuracy ' "${inspect[@]}" judge
expect 0 'score head of 1 label' "${inspect[@]}" judge
for run in online whole adapted judge; do
  "${inspect[@]}" $run >page.txt 2>&1
  python3 -c 'import sys; sys.exit(any(len(line) > 80 for line in open("page.txt", encoding="utf-8").read().splitlines()))' || fail "more than 80 columns: $(cat page.txt)"
  [ "$(wc -l <page.txt)" -le 50 ] || fail "more than a screenful: $(cat page.txt)"
  ! grep -q $'\x1b' page.txt || fail "colours in a pipe"
  "${inspect[@]}" $run --json | python3 -c '
import json, sys
told = json.loads(sys.stdin.read())
assert told["status"] == "complete" and told["step"] == told["max_steps"] > 0, told
assert told["numbers"] and told["checkpoints"] and told["model"], told
assert all(file["state"] == "same" for file in told["data_files"] + told["model_files"]), told
assert told["last_start"]["command_line"][0] == "kedge"' || fail "inspect $run --json"
done
# The command line does the same again.
sed "s| kedge | $kedge |; s|explicit_log_dir=whole|explicit_log_dir=again|" <("${inspect[@]}" whole --command) >again.sh
(cd / && bash "$folder/again.sh" >"$folder/again.log" 2>&1) || fail "the command line of a run: $(cat again.sh again.log)"
same_runs whole again
# What changed since
cp train.jsonl kept.jsonl
sed -i '1s/b/c/' train.jsonl
expect 0 '^data +train.jsonl \(60 lines, CHANGED since\)$' "${inspect[@]}" whole
mv train.jsonl gone.jsonl
expect 0 '^data +train.jsonl \(MISSING\)$' "${inspect[@]}" whole
mv kept.jsonl train.jsonl
# One that is at work, and one that was killed
"${sft[@]}" exp_manager.explicit_log_dir=busy trainer.sft.max_epochs=1000 >busy.log 2>&1 &
pid=$!
for _ in $(seq 1000); do
  [ -s busy/metrics.jsonl ] && break
  sleep 0.01
done
expect 0 '^busy: kedge sft, [0-9]+ of 15,?000 steps, running$' "${inspect[@]}" busy
kill -9 $pid
wait $pid 2>/dev/null
expect 0 '^busy: kedge sft, .* steps, not complete, and not running' "${inspect[@]}" busy
# A critic's server has a run's folder too.
start_server critic.log "$kedge" serve critic trainer.accelerator=cpu trainer.precision=32 trainer.threads=1 pretrained_checkpoint.restore_from_path=judge/model \
  trainer.ppo.port=0 exp_manager.explicit_log_dir=critic exp_manager.create_tensorboard_logger=false
expect 0 '^critic: kedge serve critic, running' "${inspect[@]}" critic
end_server

# A checkpoint
last=$(last_of online)
expect 0 '^step +20$' "${inspect[@]}" "$last"
expect 0 '^of +kedge reinforce, .*/online$' "${inspect[@]}" "$last"
expect 0 '^state +optimizer.first_moment F32 99,[0-9]+$' "${inspect[@]}" "$last"
expect 0 '^model dtype +float32$' "${inspect[@]}" "$last"
expect 0 '^files +model/config.json  ' "${inspect[@]}" "$last"
expect 0 '^counters +.*consumed_samples 80' "${inspect[@]}" "$last"
expect 0 'val_rewards ' "${inspect[@]}" "$last"
expect 0 '^trained +adapters on lm$' "${inspect[@]}" "$(last_of adapted)"
expect 0 '"step": 20,.*"files": \[\{"file": "model/config.json", "bytes": [0-9]+, "hash": "[0-9a-f]{16}"\}' "${inspect[@]}" "$last" --json
expect 0 '^  every byte as it was saved$' "${inspect[@]}" "$last" --verify
expect 0 '^  every byte as it was saved$' "${inspect[@]}" online --verify
expect 0 '"damage": \[\]' "${inspect[@]}" online --verify --json
cp -r online damaged
printf X | dd of="$(last_of damaged)/state/state.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect 1 'DAMAGED: state/state.safetensors: its bytes are not those that were saved' "${inspect[@]}" "$(last_of damaged)" --verify
expect 1 'DAMAGED: state/state.safetensors' "${inspect[@]}" damaged --verify
expect 1 '"damage": \["state/state.safetensors: its bytes' "${inspect[@]}" damaged --verify --json
cp -r online paired # as a run with a critic of its own, whose saves are damaged
mkdir paired/critic && cp -r damaged/checkpoints paired/critic
expect 1 '"checkpoint": "paired/critic/checkpoints/.*"damage": \["state/state.safetensors: its bytes' "${inspect[@]}" paired --verify --json
expect 2 'state/state.safetensors: its bytes are not those that were saved' "$kedge" export damaged out_damaged --last
sed -i 's/"consumed_samples": 80/"consumed_samples": 81/' "$(last_of damaged)/meta.json"
expect 1 'INCOMPLETE: meta.json: its bytes are not those that were saved' "${inspect[@]}" damaged --verify
truncate -s 10 "$(last_of damaged)/state/state.json"
expect 1 'INCOMPLETE: ' "${inspect[@]}" damaged --verify
# One from before there were hashes
python3 - "$last" <<'PY'
import json, pathlib, shutil, sys
shutil.copytree("online", "old")
for meta in pathlib.Path("old/checkpoints").glob("*/meta.json"):
    record = json.loads(meta.read_text())
    del record["hashes"], record["hash"]
    meta.write_text(json.dumps(record))
PY
expect 0 'complete by file sizes; it was saved without hashes' "${inspect[@]}" old --verify

# Exports
expect 0 'taking the final model of the complete run: .*/whole/model' "$kedge" export whole out1
expect 0 '^\{"folder": "out2", "holds": "model", "merged": false, "from": ".*", "step": 12\}$' "$kedge" export whole out2 --last
cmp out1/model.safetensors whole/model/model.safetensors || fail "the exported model is another"
cmp out2/model.safetensors out1/model.safetensors || fail "the last checkpoint is not the model"
expect 0 'taking the checkpoint of step [0-9]+, the best by val_loss: ' "$kedge" export whole out3 --best
expect 0 '"step": 12\}' "$kedge" export "$(last_of whole)" out4 --dtype bf16
expect 0 '^\{"folder": "out5", "holds": "adapter", "merged": false, ' "$kedge" export adapted out5
expect 0 '^\{"folder": "out6", "holds": "model", "merged": true, ' "$kedge" export adapted out6 --merge
expect 0 '"merged": true, .*"step": 8\}$' "$kedge" export "$(last_of adapted)" out7 --merge
cmp out6/model.safetensors out7/model.safetensors || fail "the last checkpoint is not the model, merged"
cmp -s out6/model.safetensors lm/model.safetensors && fail "nothing was merged"
# The base is found from where the run was started, whoever exports.
(mkdir -p elsewhere && cd elsewhere && "$kedge" export ../adapted merged --merge >../elsewhere.log 2>&1) || fail "from elsewhere: $(cat elsewhere.log)"
cmp out6/model.safetensors elsewhere/merged/model.safetensors || fail "from elsewhere it is another model"
mv busy/checkpoints/.??* . 2>/dev/null
expect 0 'taking the checkpoint of step [0-9]+, the best by val_loss' "$kedge" export busy out8
expect 2 'online: no checkpoint of step 3; there are ' "$kedge" export online out9 --step 3
expect 2 'give one of them' "$kedge" export online out9 --best --last
expect 2 'lm is not the folder of a run' "$kedge" export lm out9 --best
expect 2 'holds adapters itself' "$kedge" export adapted out9 --adapter adapted/model
expect 2 'a separate adapter is written in fp32' "$kedge" export adapted out9 --dtype bf16
[ -e out9 ] && fail "a refused export left a folder"

# Other commands take a run or a checkpoint for its model, or say what to name.
expect 0 '"logprobs": ' "$kedge" logprobs --model whole --text 'ab c'
expect 0 '"response": ' "$kedge" generate --model "$(last_of whole)" --text 'b' --max-new-tokens 4
expect 0 '"reward": ' "$kedge" score --model judge --text 'ab c'
expect 2 'adapted: its model/ holds adapters, which need their base model.*kedge export adapted OUT --merge' "$kedge" logprobs --model adapted --text a
expect 2 'busy: a run that has not written a model yet; give one of its checkpoints' "$kedge" logprobs --model busy --text a

# What is wrong
expect 2 'parent: no folder|--fork: no folder' "${sft[@]}" exp_manager.explicit_log_dir=refused --fork nowhere
expect 2 'refused: a run that never started' "${inspect[@]}" refused
expect 2 'nowhere' "${inspect[@]}" nowhere
mkdir shelf && cp -r online shelf/one
expect 2 'shelf: contains runs but is not one itself; inspect one of them: shelf/one' "${inspect[@]}" shelf
expect 2 '--verify: lm is neither a checkpoint nor the folder of a run' "${inspect[@]}" lm --verify
expect 2 '--command: lm is not the folder of a run' "${inspect[@]}" lm --command
cp -r online torn
printf '{"step": 3' >>torn/metrics.jsonl # without its end, as a run at work may leave it for a moment
expect 0 '20 of 20 steps, complete' "${inspect[@]}" torn
sed -i '3s/^/x/' torn/metrics.jsonl
expect 2 'torn/metrics.jsonl:3:1: not valid JSON' "${inspect[@]}" torn
echo '[' >torn/run.json
expect 2 'torn/run.json:.* not valid JSON' "${inspect[@]}" torn

[ "$failures" = 0 ] && echo "all as expected"
exit $((failures > 0))
