#!/usr/bin/env bash
# kedge sft and kedge rm as a user meets them, with a random model over a tokenizer of a few letters. train_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"

# A run and what it leaves
expect 0 'done: step 60 of 60, model in whole/model' "${sft[@]}" exp_manager.explicit_log_dir=whole
for file in config.yaml metrics.jsonl samples.jsonl log.txt run.json summary.json model/config.json model/tokenizer.json; do
  [ -s "whole/$file" ] || fail "no whole/$file"
done
grep -q '"reason": "complete"' whole/summary.json || fail 'summary.json says nothing of the end'
[ "$(ls whole/checkpoints | wc -l)" = 3 ] || fail "not two best and a last: $(ls whole/checkpoints)"
expect 0 'response' "$kedge" generate --model whole/model --text 'bb' --max-new-tokens 3 --threads 1
expect 0 'done: step 60 of 60' "${rm[@]}" exp_manager.explicit_log_dir=judge
grep -q '"reward_standardization"' judge/summary.json || fail 'no mean and std for a server'
expect 0 '"reward"' "$kedge" score --model judge/model --text 'b c a ab' --threads 1
# A model is scored as it was trained.
expect 0 'done: step 2 of 2' "${rm[@]}" exp_manager.explicit_log_dir=mean model.use_avg_pool=true trainer.rm.max_steps=2
cmp -s <("$kedge" score --model mean/model --text 'b c a ab' --threads 1 2>/dev/null) \
  <("$kedge" score --model mean/model --text 'b c a ab' --threads 1 --pooling mean 2>/dev/null) || fail 'the pooling is forgotten'
cmp -s <("$kedge" score --model mean/model --text 'b c a ab' --threads 1 2>/dev/null) \
  <("$kedge" score --model mean/model --text 'b c a ab' --threads 1 --pooling last 2>/dev/null) && fail 'the pooling makes no difference'
expect 0 '^model.optim.lr +number +3e-05$' "$kedge" config sft
expect 0 'lr: 9e-06' "$kedge" config rm --yaml
cp whole/summary.json summary.json
expect 0 'the run is complete; a larger trainer.sft.max_epochs' "${sft[@]}" exp_manager.explicit_log_dir=whole
cmp whole/summary.json summary.json || fail 'a complete run that was started again lost its summary'
# One that was killed before its papers were written leaves them now.
cp -r whole robbed && rm -r robbed/model robbed/.lock && sed -i 's/"complete"/"SIGTERM"/' robbed/summary.json
expect 0 'done: step 60 of 60, model in robbed/model' "${sft[@]}" exp_manager.explicit_log_dir=robbed
cmp whole/model/model.safetensors robbed/model/model.safetensors || fail 'the model of a complete run was not written again'
# The resolved configuration runs as it is.
expect 0 'done: step 60 of 60' "$kedge" sft whole/config.yaml exp_manager.explicit_log_dir=again
same_runs whole again

# Packs
expect 0 '60 rows in [0-9]+ packs, [0-9.]+ a pack' "$kedge" data pack train.jsonl packs.jsonl --model lm --pack-size 64
expect 0 'done: step 2 of 2' "${sft[@]}" exp_manager.explicit_log_dir=packed model.data.train_ds.file_path=packs.jsonl \
  model.data.train_ds.packed_sequence=true trainer.sft.max_steps=2 trainer.sft.max_epochs=1 model.data.train_ds.global_batch_size=2

# Signals, and the time limit
stopped() { # name, signal, code: stopped in the middle, when nobody reads its log any more, then resumed
  local pid reader code=none
  mkfifo "$1.pipe"
  for _ in 1 2 3 4 5; do # where it has come too far when the signal is sent, once more
    rm -rf "$1"
    cat "$1.pipe" >"$1.log" &
    reader=$!
    "${sft[@]}" exp_manager.explicit_log_dir="$1" >"$1.pipe" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -q '"step": 5,' "$1/metrics.jsonl" 2>/dev/null; do sleep 0.01; done
    kill $reader # as Ctrl-C ends the tee behind a run
    wait $reader 2>/dev/null
    signal_before "$1" $pid 50 "$2"
    local sent=$?
    wait $pid
    code=$?
    [ $sent = 0 ] && break
  done
  [ $sent = 0 ] || fail "SIG$2 always came too late"
  [ $code = "$3" ] || fail "exit $code after SIG$2: $(cat "$1.log" "$1/log.txt")"
  expect 0 'done: step 60 of 60' "${sft[@]}" exp_manager.explicit_log_dir="$1"
  same_runs whole "$1"
}
stopped term TERM 143
stopped usr1 USR1 138
stopped int INT 130
((0x$(awk '/SigIgn/ {print $2}' /proc/$$/status) & 1)) || stopped hup HUP 129 # not where all of this runs under nohup
expect 0 'stopped \(time limit\): step 1 of 60' "${sft[@]}" exp_manager.explicit_log_dir=short exp_manager.max_time_per_run=00:00:00:00
[ -d "$(last_of short)" ] || fail 'the time limit saved nothing'

# A run whose checkpoints are all damaged is told so, and loses nothing
cp -r short broken
for file in state/state.safetensors state/state.json model/model.safetensors; do
  rm -rf broken/checkpoints
  cp -r short/checkpoints broken/
  truncate -s 10 "$(last_of broken)/$file"
  truncate -s 10 "$(ls -d broken/checkpoints/*epoch=0)/$file"
  expect 2 "broken/checkpoints/.*: $file has 10 bytes" "${sft[@]}" exp_manager.explicit_log_dir=broken trainer.sft.max_steps=2
  cmp short/metrics.jsonl broken/metrics.jsonl || fail 'a run that did not begin changed the numbers'
done
rm -rf broken/checkpoints
cp -r short/checkpoints broken/
rm broken/checkpoints/*/meta.json
expect 2 'broken: none of its checkpoints can be used:' "${sft[@]}" exp_manager.explicit_log_dir=broken trainer.sft.max_steps=2
rm -rf broken/checkpoints/*
expect 0 'done: step 2 of 2' "${sft[@]}" exp_manager.explicit_log_dir=broken trainer.sft.max_steps=2
cmp short/metrics.jsonl broken/metrics.jsonl.before-1 || fail 'the numbers of the run before are gone'

# A checkpoint of another run, in a folder that has none
expect 0 'resumed from short/checkpoints.*at step 1' "${sft[@]}" exp_manager.explicit_log_dir=brought exp_manager.resume_from_checkpoint="$(last_of short)"
cmp whole/model/model.safetensors brought/model/model.safetensors || fail 'a run from a checkpoint of another goes another way'
# Nor do numbers that somebody removed or cut keep a run from going on
cp -r short cut && rm cut/samples.jsonl && : >cut/metrics.jsonl
expect 0 'cut/metrics.jsonl: was changed since the checkpoint' "${sft[@]}" exp_manager.explicit_log_dir=cut
cmp whole/model/model.safetensors cut/model/model.safetensors || fail 'a run without its numbers goes another way'

# And so is one with a flipped bit, whose sizes are right: the one before it is gone on from
flip() { # file: a bit in the middle, in place, as a disk does it
  python3 -c 'import os, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(os.path.getsize(sys.argv[1]) // 2)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 16]))' "$1"
}
expect 0 'done: step 4 of 4' "${sft[@]}" exp_manager.explicit_log_dir=sound trainer.sft.max_steps=4
for file in state/state.safetensors state/state.json model/model.safetensors model/tokenizer.json; do
  rm -rf damaged
  cp -a sound damaged # with its hard links: what damages the one damages its twin
  flip "$(last_of damaged)/$file"
  [ "$(find damaged/checkpoints -path "*step=4*/$file" -links 2 | wc -l)" = 2 ] || fail 'the best and the last are no twins'
  [ "$(ls damaged/checkpoints | wc -l)" = 3 ] || fail "not three checkpoints: $(ls damaged/checkpoints)"
  expect 0 "skipping a damaged checkpoint: .*step=4.*: $file: its bytes are not those that were saved" \
    "${sft[@]}" exp_manager.explicit_log_dir=damaged trainer.sft.max_steps=4
  grep -q 'resumed from damaged/checkpoints/.*step=2' damaged/log.txt || fail "not gone on from the one before: $(cat damaged/log.txt)"
  same_runs sound damaged
  rm -rf damaged
  cp -r sound damaged
  flip "$(last_of damaged)/$file"
  expect 2 "--fork: incomplete checkpoint: .*$file: its bytes are not those" "${sft[@]}" exp_manager.explicit_log_dir=other --fork "$(last_of damaged)"
done

# Other settings: free, converted, refused
go_on() { rm -rf changed && cp -r short changed && "${sft[@]}" exp_manager.explicit_log_dir=changed "$@"; }
expect 0 'changed since the checkpoint: model.optim.lr: 0.01 -> 0.02' go_on model.optim.lr=2e-2 trainer.sft.max_steps=4
expect 0 'global_batch_size: 4 -> 8 \(continues at the row where it stopped\)' go_on model.data.train_ds.global_batch_size=8
grep -q '"step": 28,' changed/summary.json || fail "not 27 steps of 8 after one of 4: $(grep step changed/summary.json)"
expect 2 'model.seed: 1234 -> 7 \(rows would come in another order' go_on model.seed=7
"$kedge" init wide --shape tiny --tokenizer letters --hidden-size 96 --threads 1 >/dev/null 2>&1
expect 2 'network: .*the checkpoint holds another network' go_on model.restore_from_path=wide
expect 2 'peft_scheme: "none" -> "lora"' go_on model.peft.peft_scheme=lora

# A fork
expect 0 'forked from short/checkpoints' "${sft[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of short)" trainer.sft.max_steps=3
grep -q '"parent": "short/checkpoints' child/run.json || fail 'the child does not know its parent'
expect 0 'resumed from child/checkpoints/.* at step 3' "${sft[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of short)" trainer.sft.max_steps=3
expect 2 'already holds checkpoints; a fork needs a new folder' "${sft[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of sound)"
expect 2 '--fork: no folder nowhere' "${sft[@]}" exp_manager.explicit_log_dir=other --fork nowhere

# Two runs in one folder would destroy each other
"${sft[@]}" exp_manager.explicit_log_dir=busy trainer.sft.max_epochs=100 >busy.log 2>&1 &
pid=$!
for _ in $(seq 1000); do
  [ -s busy/metrics.jsonl ] && break
  sleep 0.01
done
expect 2 'busy: another run is using this folder' "${sft[@]}" exp_manager.explicit_log_dir=busy
kill -9 $pid
wait $pid 2>/dev/null

# Adapters
lora=(model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2)
expect 0 'done: step 60 of 60' "${sft[@]}" exp_manager.explicit_log_dir=lora "${lora[@]}"
[ -s lora/model/adapter_model.safetensors ] || fail 'no adapter'
# Another base under the same name: the checkpoint has the adapters alone.
mv lm lm.kept && "$kedge" init lm --shape tiny --tokenizer letters --seed 5 --threads 1 >/dev/null 2>&1
expect 2 'cannot resume: the base of the adapters would be a different one. The weights in lm have' "${sft[@]}" exp_manager.explicit_log_dir=lora "${lora[@]}" trainer.sft.max_epochs=5
rm -r lm && mv lm.kept lm
expect 0 'done: step 75 of 75' "${sft[@]}" exp_manager.explicit_log_dir=lora "${lora[@]}" trainer.sft.max_epochs=5
expect 0 '"merged": true' "$kedge" export lm merged --adapter lora/model --merge
expect 0 'done: step 60 of 60' "${rm[@]}" exp_manager.explicit_log_dir=lora_judge "${lora[@]}"
grep -q '"score"' lora_judge/model/adapter_config.json || fail 'the head was not trained with the adapters'

# What `kedge --help` shows first, as it stands but for names, on sixty rows: a dozen steps whose validation says that something was learned.
example=$("$kedge" --help | sed -n '/^  kedge sft /,/[^\\]$/p' | tr -d '\\\n')
grep -q 'max_epochs' <<<"$example" || fail "no example in the help: $example"
read -ra words <<<"$example"
words=("${words[@]/BASE/lm}") words=("${words[@]/rows.jsonl/train.jsonl}") words=("${words[@]/runs/first}")
expect 0 'done: step 9 of 9' "$kedge" "${words[@]:1}" trainer.accelerator=cpu trainer.threads=1 trainer.sft.val_check_interval=3
python3 -c 'import json
losses = [line["validation/loss"] for line in map(json.loads, open("first/sft/metrics.jsonl")) if "validation/loss" in line]
assert len(losses) >= 3 and losses == sorted(losses, reverse=True) and losses[0] > losses[-1], losses' || fail 'the first example of the help trains nothing'
expect 0 'trainer.sft.max_steps: 100 steps are requested, but 15 are made: trainer.sft.max_epochs=1 over 15 steps per epoch' \
  "${sft[@]}" exp_manager.explicit_log_dir=fewer trainer.sft.max_steps=100 trainer.sft.max_epochs=1

# Plans
expect 0 'fits: .* needed, .* free' "$kedge" plan "${sft[@]:1}"
expect 0 '15 per epoch; validation every 2, saving every 2' "$kedge" plan "${sft[@]:1}"
expect 0 '"fits": true' "$kedge" plan whole/config.yaml --json
expect 0 '60 training rows' "$kedge" plan "${rm[@]:1}"
expect 2 'expected sft, rm, dpo, kto, ppo, reinforce, grpo, rloo, rs, serve reward or serve critic first' "$kedge" plan model.seed=3
expect 0 'done: step 1 of 1' "$kedge" train_gpt_sft "${sft[@]:2}" exp_manager.explicit_log_dir=alias trainer.sft.max_steps=1

# The files that come with kedge
sets=(model.restore_from_path=lm model.data.train_ds.file_path=train.jsonl model.data.validation_ds.file_path=val.jsonl)
expect 0 '21 in total, 7 per epoch' "$kedge" plan "$here/../../configs/tiny/sft.yaml" "${sets[@]}"
expect 2 '60 rows are fewer than one batch of 128' "$kedge" plan "$here/../../configs/reference/gpt_sft.yaml" "${sets[@]}"
sets=(pretrained_checkpoint.restore_from_path=lm 'model.data.data_prefix={train: [pairs.jsonl], validation: [val_pairs.jsonl], test: [val_pairs.jsonl]}')
expect 0 '21 in total, 7 per epoch' "$kedge" plan "$here/../../configs/tiny/rm.yaml" "${sets[@]}"
expect 0 '30 in total, 30 per epoch' "$kedge" plan "$here/../../configs/reference/training_rm.yaml" "${sets[@]}" model.global_batch_size=2

# Mistakes are told before weights are read
expect 2 'model.restore_from_path' "$kedge" sft model.data.train_ds.file_path=train.jsonl
expect 2 'trainer.sft.save_interval: 3 is not a multiple' "${sft[@]}" trainer.sft.save_interval=3 exp_manager.explicit_log_dir=no
expect 2 'global_batch_size: 4 rows do not divide into micro-batches of 3' "${sft[@]}" model.data.train_ds.micro_batch_size=3 exp_manager.explicit_log_dir=no
expect 2 'max_stepz.*max_steps' "${sft[@]}" trainer.sft.max_stepz=3
expect 2 'trainer.devices x trainer.num_nodes: 2 ranks, but 1 was started' "${sft[@]}" trainer.devices=2
expect 2 'model.data.train_ds.drop_last: false is not supported' "${sft[@]}" model.data.train_ds.drop_last=false exp_manager.explicit_log_dir=no
expect 2 "needs quotes inside the shell's: 'model.data.train_ds.prompt_template=\"[{]input[}] [{]output[}]\"'" \
  "${sft[@]}" 'model.data.train_ds.prompt_template={input} {output}' exp_manager.explicit_log_dir=no
expect 2 'train.jsonl:1: no "a" field; the row has "input", "output"; prompt_template="[{]a[}] [{]output[}]" and label_key=output of model.data.train_ds' \
  "${sft[@]}" 'model.data.train_ds.prompt_template="{a} {output}"' model.data.train_ds.truncation_field=a exp_manager.explicit_log_dir=no
echo '{"messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "a"}]}' >chats.jsonl
expect 2 'no "input" field; the row has "messages"; rows of conversations need model.data.chat=true' \
  "${sft[@]}" model.data.train_ds.file_path=chats.jsonl exp_manager.explicit_log_dir=no
echo '{"input": "b"}' >>train.jsonl
expect 2 'train.jsonl:61: no "output" field; the row has "input"' "${sft[@]}" exp_manager.explicit_log_dir=no
[ -e no ] && fail 'a run that never began left a folder'

exit $((failures > 0))
