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
expect 0 '^ *model.optim.lr +number +3e-05 ' "$kedge" config sft
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
stopped() { # name, signal, code: stopped in the middle, then gone on with
  "${sft[@]}" exp_manager.explicit_log_dir="$1" >"$1.log" 2>&1 &
  local pid=$!
  for _ in $(seq 1000); do
    grep -q '"step": 5,' "$1/metrics.jsonl" 2>/dev/null && break
    sleep 0.01
  done
  kill -"$2" $pid
  wait $pid
  local code=$?
  # One that came too late to stop anything ends well.
  [ $code = "$3" ] || grep -q 'done: step 60' "$1.log" || fail "exit $code after SIG$2: $(cat "$1.log")"
  expect 0 'done: step 60 of 60' "${sft[@]}" exp_manager.explicit_log_dir="$1"
  same_runs whole "$1"
}
stopped term TERM 143
stopped usr1 USR1 138
expect 0 'stopped \(time limit\): step 1 of 60' "${sft[@]}" exp_manager.explicit_log_dir=short exp_manager.max_time_per_run=00:00:00:00
[ -d "$(last_of short)" ] || fail 'the time limit saved nothing'

# A checkpoint that is not whole is named and passed over
cp -r short broken
for file in state/state.safetensors state/state.json model/model.safetensors; do
  rm -rf broken/checkpoints
  cp -r short/checkpoints broken/
  truncate -s 10 "$(last_of broken)/$file"
  truncate -s 10 "$(ls -d broken/checkpoints/*epoch=0)/$file"
  expect 0 "not a whole checkpoint: .*$file has 10 bytes" "${sft[@]}" exp_manager.explicit_log_dir=broken trainer.sft.max_steps=2
done
rm -rf broken/checkpoints
cp -r short/checkpoints broken/
rm broken/checkpoints/*/meta.json
expect 0 'not a whole checkpoint: .*has no meta.json' "${sft[@]}" exp_manager.explicit_log_dir=broken trainer.sft.max_steps=2

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
  cp -r sound damaged
  flip "$(last_of damaged)/$file"
  rm -r damaged/checkpoints/*step=4*epoch=0 # the twin, which would be as good
  [ "$(ls damaged/checkpoints | wc -l)" = 2 ] || fail "not two checkpoints: $(ls damaged/checkpoints)"
  expect 0 "a damaged checkpoint is passed over: .*step=4.*: $file: its bytes are not those that were saved" \
    "${sft[@]}" exp_manager.explicit_log_dir=damaged trainer.sft.max_steps=4
  grep -q 'resumed from damaged/checkpoints/.*step=2' damaged/log.txt || fail "not gone on from the one before: $(cat damaged/log.txt)"
  same_runs sound damaged
  rm -rf damaged
  cp -r sound damaged
  flip "$(last_of damaged)/$file"
  expect 2 "--fork: not a whole checkpoint: .*$file: its bytes are not those" "${sft[@]}" exp_manager.explicit_log_dir=other --fork "$(last_of damaged)"
done

# Other settings: free, converted, refused
go_on() { rm -rf changed && cp -r short changed && "${sft[@]}" exp_manager.explicit_log_dir=changed "$@"; }
expect 0 'changed since the checkpoint: model.optim.lr: 0.01 -> 0.02' go_on model.optim.lr=2e-2 trainer.sft.max_steps=4
expect 0 'global_batch_size: 4 -> 8 \(goes on at the row where it stopped\)' go_on model.data.train_ds.global_batch_size=8
grep -q '"step": 28,' changed/summary.json || fail "not 27 steps of 8 after one of 4: $(grep step changed/summary.json)"
expect 2 'model.seed: 1234 -> 7 \(rows would come in another order' go_on model.seed=7
"$kedge" init wide --shape tiny --tokenizer letters --hidden-size 96 --threads 1 >/dev/null 2>&1
expect 2 'network: .*the checkpoint holds another network' go_on model.restore_from_path=wide
expect 2 'peft_scheme: "none" -> "lora"' go_on model.peft.peft_scheme=lora

# A fork
expect 0 'forked from short/checkpoints' "${sft[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of short)" trainer.sft.max_steps=3
grep -q '"parent": "short/checkpoints' child/run.json || fail 'the child does not know its parent'
expect 2 'holds checkpoints already; a fork begins in a folder of its own' "${sft[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of short)"
expect 2 '--fork: no folder nowhere' "${sft[@]}" exp_manager.explicit_log_dir=other --fork nowhere

# Two runs in one folder would destroy each other
"${sft[@]}" exp_manager.explicit_log_dir=busy trainer.sft.max_epochs=100 >busy.log 2>&1 &
pid=$!
for _ in $(seq 1000); do
  [ -s busy/metrics.jsonl ] && break
  sleep 0.01
done
expect 2 'busy: another run is at work in this folder' "${sft[@]}" exp_manager.explicit_log_dir=busy
kill -9 $pid
wait $pid 2>/dev/null

# Adapters
lora=(model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2)
expect 0 'done: step 60 of 60' "${sft[@]}" exp_manager.explicit_log_dir=lora "${lora[@]}"
[ -s lora/model/adapter_model.safetensors ] || fail 'no adapter'
expect 0 '"merged": true' "$kedge" export lm merged --adapter lora/model --merge
expect 0 'done: step 60 of 60' "${rm[@]}" exp_manager.explicit_log_dir=lora_judge "${lora[@]}"
grep -q '"score"' lora_judge/model/adapter_config.json || fail 'the head was not trained with the adapters'

# Plans
expect 0 'fits: .* needed, .* free' "$kedge" plan "${sft[@]:1}"
expect 0 '15 an epoch; validation every 2, saving every 2' "$kedge" plan "${sft[@]:1}"
expect 0 '"fits": true' "$kedge" plan whole/config.yaml --json
expect 0 '60 training rows' "$kedge" plan "${rm[@]:1}"
expect 2 'wants sft, rm, ppo, reinforce, rs, serve reward or serve critic first' "$kedge" plan model.seed=3
expect 0 'done: step 1 of 1' "$kedge" train_gpt_sft "${sft[@]:2}" exp_manager.explicit_log_dir=alias trainer.sft.max_steps=1

# The files that come with kedge
sets=(model.restore_from_path=lm model.data.train_ds.file_path=train.jsonl model.data.validation_ds.file_path=val.jsonl)
expect 0 '21 in all, 7 an epoch' "$kedge" plan "$here/../../configs/tiny/sft.yaml" "${sets[@]}"
expect 2 '60 rows are fewer than one batch of 128' "$kedge" plan "$here/../../configs/reference/gpt_sft.yaml" "${sets[@]}"
sets=(pretrained_checkpoint.restore_from_path=lm 'model.data.data_prefix={train: [pairs.jsonl], validation: [val_pairs.jsonl], test: [val_pairs.jsonl]}')
expect 0 '21 in all, 7 an epoch' "$kedge" plan "$here/../../configs/tiny/rm.yaml" "${sets[@]}"
expect 0 '30 in all, 30 an epoch' "$kedge" plan "$here/../../configs/reference/training_rm.yaml" "${sets[@]}" model.global_batch_size=2

# Mistakes are told before weights are read
expect 2 'model.restore_from_path' "$kedge" sft model.data.train_ds.file_path=train.jsonl
expect 2 'trainer.sft.save_interval: 3 is no multiple' "${sft[@]}" trainer.sft.save_interval=3 exp_manager.explicit_log_dir=no
expect 2 'global_batch_size: 4 rows do not divide into micro-batches of 3' "${sft[@]}" model.data.train_ds.micro_batch_size=3 exp_manager.explicit_log_dir=no
expect 2 'max_stepz.*max_steps' "${sft[@]}" trainer.sft.max_stepz=3
expect 2 'trainer.devices x trainer.num_nodes: 2 ranks, but 1 was started' "${sft[@]}" trainer.devices=2
expect 2 'model.data.train_ds.drop_last: false is not supported' "${sft[@]}" model.data.train_ds.drop_last=false exp_manager.explicit_log_dir=no
echo '{"input": "b"}' >>train.jsonl
expect 2 'train.jsonl:61: no "output" field' "${sft[@]}" exp_manager.explicit_log_dir=no
[ -e no ] && fail 'a run that never began left a folder'

exit $((failures > 0))
