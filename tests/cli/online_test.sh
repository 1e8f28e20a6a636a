#!/usr/bin/env bash
# kedge reinforce and kedge rs as a user meets them, with a random model over a tokenizer of a few letters and a rule as reward. online_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
reinforce+=("${rule[@]}")
rs+=("${rule[@]}")
has() { # file, pattern...: each is there
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$file" || fail "no /$pattern/ in $file"
  done
}

# A run and what it leaves
leaves() { # folder, metric..., in its metrics.jsonl
  local folder=$1 file
  shift
  for file in config.yaml metrics.jsonl samples.jsonl log.txt run.json summary.json model/config.json model/tokenizer.json model/model.safetensors; do
    [ -s "$folder/$file" ] || fail "no $folder/$file"
  done
  for name in train_optim/{loss,grad_norm,lr,optim_step} train_rollouts/{rewards_std,rewards/letters,response_lengths,prompt_lengths,generation_length} \
    train_rollouts/{fraction_of_samples_properly_ended,entropy,distinct_2,reward_length_correlation,groups_without_spread,logprob_gap_mean,logprob_gap_max} \
    train_rollouts/{rollout_size,consumed_samples,consumed_rollouts,epoch} val_rollouts/{rewards/letters,generation_length,distinct_2} \
    timers/{generate,critic_wait,rollout_time,train_time,validation_time} "$@"; do
    has "$folder/metrics.jsonl" "\"$name\": -?[0-9]"
  done
  has "$folder/samples.jsonl" '"table": "train_rollouts", "prompt": "b+ c", "response": ' '"table": "val_rollouts"'
  has "$folder/summary.json" '"reason": "complete"' '"step": 20' '"consumed_samples": 80' '"consumed_rollouts": 320'
  [ "$(ls "$folder/rollouts" | wc -l)" = 20 ] || fail "not 20 steps in $folder/rollouts: $(ls "$folder/rollouts")"
  has "$folder/rollouts/step-0.jsonl" '^\{"step":0,"fingerprint":"[0-9a-f]+","rows":16,"weights_before":"[0-9a-f]{16}","weights_after":"[0-9a-f]{16}","updates":\[\{"loss":.*\}\]\}$' '"ids":\[1,.*"finished":true.*"reward":[0-9].*"parts":\{"letters":'
  expect 0 '"response"' "$kedge" generate --model "$folder/model" --text 'bb c' --max-new-tokens 3 --threads 1
}
expect 0 'done: step 20 of 20, model in whole/model' "${reinforce[@]}" exp_manager.explicit_log_dir=whole
leaves whole train_rollouts/{rewards,rewards_with_kl,baseline_mean,init_policy_kl,init_policy_kl_sum} val_rollouts/{rewards,init_policy_kl} timers/init_logprobs
has whole/summary.json '"reinforce_optimization_step": 40'
[ -d "$(echo whole/checkpoints/megatron_gpt-step=20-consumed_samples=80-reinforce_optimization_step=40-epoch=2-val_rewards=*.[0-9][0-9][0-9]-last)" ] ||
  fail "no newest checkpoint under its name: $(ls whole/checkpoints)"
[ "$(ls whole/checkpoints | wc -l)" = 2 ] || fail "not the best and the last: $(ls whole/checkpoints)"
expect 0 'done: step 20 of 20, model in rs_whole/model' "${rs[@]}" exp_manager.explicit_log_dir=rs_whole
leaves rs_whole train_rollouts/{global_rewards,global_response_lengths_mean,global_prompt_lengths} val_rollouts/{global_rewards,global_response_lengths_mean}
has rs_whole/summary.json '"rs_optimization_step": 40'
[ -d "$(echo rs_whole/checkpoints/megatron_gpt-step=20-consumed_samples=80-rs_optimization_step=40-epoch=2-val_global_rewards=*.[0-9][0-9][0-9]-last)" ] ||
  fail "no newest checkpoint under its name: $(ls rs_whole/checkpoints)"
# Both learn: at the end there is much more of the letter than in the answers of the first step, which no update has seen.
learned() { # folder, name
  grep -oE "\"(train|val)_rollouts/$2\": [^,]*" "$1/metrics.jsonl" | awk -v of="$1" '{ last = $2; if (NR == 1) first = $2 }
    END { printf "%s: rewards from %g to %g\n", of, first, last; exit !(last > first + 2) }' || fail "$1 learned nothing"
}
learned whole rewards
learned rs_whole global_rewards
# The records say what the metrics say.
python3 - whole rs_whole <<'PY' || fail 'the records and the metrics disagree'
import json, sys
for folder in sys.argv[1:]:
    metrics = [line for line in map(json.loads, open(f"{folder}/metrics.jsonl")) if "train/step_time" in line]
    assert [line["step"] for line in metrics] == list(range(20))
    for line in metrics:
        head, *rows = map(json.loads, open(f"{folder}/rollouts/step-{line['step']}.jsonl"))
        assert head["rows"] == len(rows) == 16
        mean = lambda values: sum(values) / len(rows)
        name = "rewards" if folder == "whole" else "global_rewards"
        assert mean([row["reward"] for row in rows]) == line[f"train_rollouts/{name}"]
        assert mean([row["finished"] for row in rows]) == line["train_rollouts/fraction_of_samples_properly_ended"]
        assert mean([len(row["ids"]) - row["prompt_length"] for row in rows]) == line["train_rollouts/generation_length"]
        for row in rows:
            assert row["reward"] == row["response"].count("a"), row
            assert row["finished"] == (row["ids"][-1] == 6), row
        slots = {}
        for row in rows:
            slots.setdefault(row["slot"], []).append(row)
        for group in slots.values():
            assert [row["sample"] for row in group] == [0, 1, 2, 3], group
            if folder == "whole":
                continue
            # The best one is trained on, of equal ones the later.
            best = max(group, key=lambda row: (row["reward"], row["sample"]))
            assert [row["trains"] for row in group] == [row is best for row in group], group
PY

# The same seed gives the same bits, by the resolved configuration too
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=twin
same_online whole twin
expect 0 'done: step 20 of 20' "$kedge" reinforce whole/config.yaml exp_manager.explicit_log_dir=again
same_online whole again
expect 0 'done: step 20 of 20' "$kedge" rs rs_whole/config.yaml exp_manager.explicit_log_dir=rs_again
same_online rs_whole rs_again
expect 0 'done: step 1 of 1' "${reinforce[@]}" exp_manager.explicit_log_dir=other_seed model.seed=7 trainer.reinforce.max_steps=1
cmp -s whole/rollouts/step-0.jsonl other_seed/rollouts/step-0.jsonl && fail 'another seed draws the same'
# Which steps are kept changes nothing else.
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=some rollouts.keep=every:5
same_runs whole some
[ "$(ls some/rollouts | sort | tr '\n' ' ')" = 'step-0.jsonl step-10.jsonl step-15.jsonl step-5.jsonl ' ] || fail "every fifth step: $(ls some/rollouts)"
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=none rollouts.keep=none
same_runs whole none
[ -e none/rollouts ] && fail 'rollouts.keep=none keeps'

# Plans and configurations
expect 0 '20 in total, 10 per epoch of 40 prompts; validation every 2, saving every 2' "$kedge" plan "${reinforce[@]:1}"
expect 0 '4 prompts x 4 answers of up to 16 tokens, 2 updates; prompts of up to 48 tokens' "$kedge" plan "${reinforce[@]:1}"
expect 0 '"updates_per_step": 2,' "$kedge" plan reinforce whole/config.yaml --json
expect 0 'fits: .* needed, .* free' "$kedge" plan "${rs[@]:1}"
expect 0 '"algorithm": "rs"' "$kedge" plan rs rs_whole/config.yaml --json
expect 0 '^  update +[0-9.]+ MiB  most$' "$kedge" plan "${reinforce[@]:1}" --no-time
expect 0 '^  a step about .* s: generate' "$kedge" plan "${reinforce[@]:1}"
expect 0 'checkpoints of .* free in' "$kedge" plan "${reinforce[@]:1}" --no-time
# A run that is a fifth too large for what is free is refused before weights are read (the folder has none), with settings that would do.
cp -r lm weightless && rm weightless/*.safetensors
free=$("$kedge" plan "${reinforce[@]:1}" --no-time --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["free_bytes"])')
too_large=("${reinforce[@]:1}" pretrained_checkpoint.restore_from_path=weightless model.engine.memory=$((free * 12 / 10)))
expect 2 'the run needs .* of memory \(.*\), and .* are free. What would fit:' "$kedge" "${too_large[@]}" exp_manager.explicit_log_dir=too_large
expect 2 '^  would fit: model.engine.memory=auto$' "$kedge" plan "${too_large[@]}" --no-time
[ -e too_large ] && fail 'a run that does not fit leaves a folder'
for name in reinforce rs; do
  expect 0 "^ *trainer\\.$name\\.val_check_interval +integer +10$" "$kedge" config $name
  "$kedge" config $name --yaml >$name.yaml || fail "no configuration of $name"
  # As it stands, with what it wants.
  expect 0 '4 per epoch of 40 prompts' "$kedge" plan $name $name.yaml "${online[@]}" "${rule[@]}" model.$name.num_rollout_samples=10 model.global_batch_size=10
done
sets=(pretrained_checkpoint.restore_from_path=lm trainer.accelerator=cpu 'model.data.data_prefix={train: [prompts.jsonl], validation: [val_prompts.jsonl], test: [val_prompts.jsonl]}' \
  model.data.add_bos=false model.encoder_seq_length=512)
for name in reinforce rs; do
  expect 0 '20 in total, 2 per epoch of 40 prompts' "$kedge" plan "$name" "$here/../../configs/tiny/$name.yaml" "${sets[@]}"
  expect 0 '2 in total, 1 per epoch of 40 prompts' "$kedge" plan "$name" "$here/../../configs/reference/gpt_${name}_actor.yaml" "${sets[@]}" \
    model.$name.num_rollout_samples=32 model.global_batch_size=32 trainer.$name.max_epochs=2
done

# Adapters: the checkpoint has nothing else
lora=(model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2)
for name in reinforce rs; do
  declare -n command=$name
  expect 0 'done: step 20 of 20' "${command[@]}" exp_manager.explicit_log_dir=lora_$name "${lora[@]}"
  for folder in lora_$name "$(last_of lora_$name)"; do
    [ -s "$folder/model/adapter_model.safetensors" ] || fail "no adapters in $folder"
    [ -e "$folder/model/model.safetensors" ] && fail "$folder holds the network too"
  done
  state=$(stat -c %s "$(last_of lora_$name)/state/state.safetensors") network=$(stat -c %s lm/model.safetensors)
  [ "$state" -lt "$network" ] || fail "the state of adapters is larger than the network: $state bytes"
  expect 0 '"merged": true' "$kedge" export lm merged_$name --adapter lora_$name/model --merge
  expect 0 '"response"' "$kedge" generate --model merged_$name --text 'bb c' --max-new-tokens 3 --threads 1
done
has lora_reinforce/metrics.jsonl '"train_rollouts/init_policy_kl": 0\.[0-9]*[1-9]'

# Signals, and the time limit
stopped() { # folder, signal, code, whole, command...: stopped in the middle, then resumed
  local folder=$1 signal=$2 wanted=$3 whole=$4
  shift 4
  local pid code sent
  for _ in 1 2 3 4 5; do # where it has come too far when the signal is sent, once more
    rm -rf "$folder"
    "$@" exp_manager.explicit_log_dir="$folder" >"$folder.log" 2>&1 &
    pid=$!
    wait_for_step "$folder" $pid 5
    signal_before "$folder" $pid 17 "$signal"
    sent=$?
    wait $pid
    code=$?
    [ $sent = 0 ] && break
  done
  [ $sent = 0 ] || fail "SIG$signal always came too late"
  [ $code = "$wanted" ] || fail "exit $code after SIG$signal: $(cat "$folder.log")"
  expect 0 'done: step 20 of 20|the run is complete' "$@" exp_manager.explicit_log_dir="$folder"
  same_online "$whole" "$folder"
}
stopped term TERM 143 whole "${reinforce[@]}"
stopped usr1 USR1 138 whole "${reinforce[@]}"
stopped rs_term TERM 143 rs_whole "${rs[@]}"
stopped lora_term TERM 143 lora_reinforce "${reinforce[@]}" "${lora[@]}"
expect 0 'stopped \(time limit\): step 1 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=short exp_manager.max_time_per_run=00:00:00:00
[ -d "$(last_of short)" ] || fail 'the time limit saved nothing'
has short/metrics.jsonl '"val_rollouts/rewards"'

# A fork, a finished run, one without steps
expect 0 'forked from short/checkpoints' "${reinforce[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of short)" trainer.reinforce.max_steps=3
has child/run.json '"parent": "short/checkpoints'
cmp whole/rollouts/step-2.jsonl child/rollouts/step-2.jsonl || fail 'a fork goes another way'
expect 2 'already holds checkpoints; a fork needs a new folder' "${reinforce[@]}" exp_manager.explicit_log_dir=child --fork "$(last_of whole)"
cp whole/summary.json summary.json
expect 0 'the run is complete; a larger trainer.reinforce.max_epochs' "${reinforce[@]}" exp_manager.explicit_log_dir=whole
cmp whole/summary.json summary.json || fail 'a complete run that was started again lost its summary'
# One that saves nothing cannot continue, and its model is never replaced.
unsaved=("${reinforce[@]}" exp_manager.explicit_log_dir=unsaved trainer.reinforce.val_check_interval=0 trainer.reinforce.max_steps=2)
expect 0 'done: step 2 of 2' "${unsaved[@]}"
[ -z "$(ls unsaved/checkpoints)" ] || fail "saved: $(ls unsaved/checkpoints)"
cp unsaved/model/model.safetensors first.safetensors
expect 0 'the run in unsaved is complete, and has no checkpoint to continue from' "${unsaved[@]}"
expect 2 'unsaved: holds the model of a finished run, which this start would replace' "${unsaved[@]}" model.seed=7
cmp first.safetensors unsaved/model/model.safetensors || fail 'the model of a finished run was replaced'
cp -r rs_whole longer
expect 0 'done: step 22 of 22' "${rs[@]}" exp_manager.explicit_log_dir=longer trainer.rs.max_epochs=3 trainer.rs.max_steps=22
for name in reinforce rs; do
  declare -n command=$name
  expect 0 'done: step 0 of 0' "${command[@]}" exp_manager.explicit_log_dir=nothing_$name "trainer.$name.max_steps=0"
  cmp lm/model.safetensors nothing_$name/model/model.safetensors || fail "$name without steps changed the model"
done

# Checkpoints are ranked by what is watched
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=ranked reward.watch.spaces.kind=regex reward.watch.spaces.use=count \
  reward.watch.spaces.pattern=c exp_manager.checkpoint_callback_params.monitor=val_watch/spaces exp_manager.checkpoint_callback_params.save_top_k=2
cmp whole/model/model.safetensors ranked/model/model.safetensors || fail 'what is watched is trained on'
has ranked/metrics.jsonl '"train_rollouts/watch/spaces"' '"val_rollouts/watch/spaces"'
python3 - <<'PY' || fail "not the two best by what is watched: $(ls ranked/checkpoints)"
import json, os, re
scores = {line["step"]: line["val_rollouts/watch/spaces"] for line in map(json.loads, open("ranked/metrics.jsonl")) if "val_rollouts/watch/spaces" in line}
kept = [int(re.search("step=([0-9]+)", name)[1]) for name in os.listdir("ranked/checkpoints") if not name.endswith("-last")]
assert len(kept) == 2 and len(scores) == 10, (kept, scores)
assert sorted(scores[step] for step in kept) == sorted(scores.values())[-2:], (kept, scores)
assert len(set(scores.values())) > 1, scores
PY

# Odd cases that run
expect 0 'num_rollouts_per_prompt: a single answer is its own baseline, so nothing is learned' "${reinforce[@]}" exp_manager.explicit_log_dir=alone \
  trainer.reinforce.num_rollouts_per_prompt=1 model.global_batch_size=4 trainer.reinforce.max_steps=2 model.optim.weight_decay=0
cmp lm/model.safetensors alone/model/model.safetensors || fail 'something was learned from answers that are their own baselines'
# A penalty that the group's deviation divides pulls at full strength where all rewards are equal.
expect 0 'trainer.reinforce.baseline=group_norm divides by the group.s deviation, and the KL penalty is part of what it normalises' \
  "${reinforce[@]}" exp_manager.explicit_log_dir=normed trainer.reinforce.baseline=group_norm trainer.reinforce.initial_policy_kl_penalty=0.01 trainer.reinforce.max_steps=1
expect 0 'done: step 1 of 1' "${reinforce[@]}" exp_manager.explicit_log_dir=unpunished trainer.reinforce.baseline=group_norm \
  trainer.reinforce.initial_policy_kl_penalty=0 trainer.reinforce.max_steps=1
grep -q 'divides by the group' unpunished/log.txt && fail 'a warning of a penalty that is not there'
expect 0 'done: step 2 of 2' "${rs[@]}" exp_manager.explicit_log_dir=rs_alone model.rs.num_rollouts_per_prompt=1 trainer.rs.max_steps=2
expect 0 'done: step 2 of 2' "${reinforce[@]}" exp_manager.explicit_log_dir=single model.reinforce.num_rollout_samples=1 model.global_batch_size=4 trainer.reinforce.max_steps=2
head -n 1 prompts.jsonl >one.jsonl
expect 0 'done: step 4 of 4' "${reinforce[@]}" exp_manager.explicit_log_dir=one_prompt model.reinforce.num_rollout_samples=1 model.global_batch_size=4 \
  'model.data.data_prefix={train: [one.jsonl], validation: [one.jsonl], test: [one.jsonl]}' trainer.reinforce.max_epochs=4
# EOS may not come before the end: all answers are cut, and dropped.
cut=(model.reinforce.length_params.min_length=16 trainer.reinforce.max_steps=3 model.optim.weight_decay=0)
expect 0 'done: step 3 of 3' "${reinforce[@]}" exp_manager.explicit_log_dir=cut "${cut[@]}"
has cut/log.txt '0 of 16 answers ended by themselves; the others were cut off by a length limit, and trainer\.reinforce\.unfinished=drop does not train on those: .* What ends an answer: "<eos>" \(6\)\. Where they were cut off:'
[ "$(grep -A3 'Where they were cut off:' cut/log.txt | grep -cE '^  "')" = 3 ] || fail "not three tails: $(grep -A3 'Where they were cut off:' cut/log.txt)"
has cut/metrics.jsonl '"train_rollouts/fraction_of_samples_properly_ended": 0\.0'
[ "$(grep -c '"train_optim/loss": -*0.0,' cut/metrics.jsonl)" = 6 ] || fail "a loss of answers that were cut: $(grep -o '"train_optim/loss": [^,]*' cut/metrics.jsonl)"
cmp lm/model.safetensors cut/model/model.safetensors || fail 'answers that were cut have taught something'
expect 0 'done: step 3 of 3' "${reinforce[@]}" exp_manager.explicit_log_dir=kept "${cut[@]}" trainer.reinforce.unfinished=keep
cmp -s lm/model.safetensors kept/model/model.safetensors && fail 'unfinished=keep taught nothing'

# A run that goes wrong
expect 1 'KL run-away: the policy is .* nats per token from the reference.*health.max_kl is 1e-06' "${reinforce[@]}" exp_manager.explicit_log_dir=sick \
  trainer.reinforce.on_unhealthy=stop trainer.reinforce.health.max_kl=1e-6
[ -d "$(last_of sick)" ] || fail 'a run that stops because it is unhealthy saves nothing'
has sick/summary.json '"reason": "KL run-away'
expect 0 'done: step 20 of 20' "${reinforce[@]}" exp_manager.explicit_log_dir=sick
same_online whole sick
expect 0 'KL run-away' "${reinforce[@]}" exp_manager.explicit_log_dir=warned trainer.reinforce.health.max_kl=1e-6 trainer.reinforce.max_steps=3

# Other settings at a resume: free, converted, refused
go_on() { rm -rf changed && cp -r short changed && "${reinforce[@]}" exp_manager.explicit_log_dir=changed trainer.reinforce.max_steps=3 "$@"; }
expect 0 'changed since the checkpoint: model.optim.lr: 0.001 -> 0.002' go_on model.optim.lr=2e-3
expect 0 'num_rollout_samples: 4 -> 2 \(continues at the prompt where it stopped\)' go_on model.reinforce.num_rollout_samples=2
"$kedge" init lm2 --shape tiny --tokenizer letters --seed 5 --threads 1 >/dev/null 2>&1
expect 2 'cannot resume: the reference policy would be a different one. The weights in lm2 have the hash .*, in lm, had' go_on pretrained_checkpoint.restore_from_path=lm2
expect 2 'model.seed: 1234 -> 7 \(rows would come in another order' go_on model.seed=7
expect 2 'peft_scheme: "none" -> "lora"' go_on "${lora[@]}"

# Mistakes are told before weights are read
mistake() { expect 2 "$@" exp_manager.explicit_log_dir=no; }
: >empty.jsonl
data() { echo "model.data.data_prefix={train: [$1], validation: [$2], test: [$2]}"; }
mistake 'empty\.jsonl: ' "${reinforce[@]}" "$(data empty.jsonl val_prompts.jsonl)"
mistake 'empty\.jsonl: ' "${rs[@]}" "$(data prompts.jsonl empty.jsonl)"
mistake 'nowhere\.jsonl' "${rs[@]}" "$(data nowhere.jsonl val_prompts.jsonl)"
printf '{"text": "%s"}\n' "$(printf 'b%.0s' $(seq 60))" "$(printf 'b%.0s' $(seq 90))" >long.jsonl
mistake 'long\.jsonl.*(48|too long|longer)' "${reinforce[@]}" "$(data long.jsonl val_prompts.jsonl)" model.reinforce.num_rollout_samples=2 model.global_batch_size=4
mistake 'length_params\.max_length: answers of up to 64 tokens leave no room for a prompt in a context of 64' "${rs[@]}" model.rs.length_params.max_length=64
mistake '40 prompts are fewer than one step takes, 41' "${reinforce[@]}" model.reinforce.num_rollout_samples=41
mistake '8 answers do not divide into micro-batches of 3' "${reinforce[@]}" model.micro_batch_size=3
mistake 'the 16 answers of a step \(4 prompts x 4\) do not divide into updates of 5' "${reinforce[@]}" model.global_batch_size=5
mistake 'the 4 answers of a step \(4 prompts x 1\) do not divide into updates of 3' "${rs[@]}" model.global_batch_size=3
mistake 'model.rs.top_n_rollouts: the best 5 of 4 answers' "${rs[@]}" model.rs.top_n_rollouts=5
mistake 'remote_rm: cannot be combined with reward.sources' "${reinforce[@]}" remote_rm.host=localhost
mistake 'remote_rm.pad_to_length: 63 is less than the maximum length of a prompt and its answer, 64' "$kedge" rs "${online[@]}" "${for_rs[@]}" remote_rm.pad_to_length=63
mistake 'max_stepz.*max_steps' "${reinforce[@]}" trainer.reinforce.max_stepz=3
mistake 'top_n_rollout.*top_n_rollouts' "${rs[@]}" model.rs.top_n_rollout=1
mistake 'trainer.reinforce.save_interval: 3 is not a multiple' "${reinforce[@]}" trainer.reinforce.save_interval=3
mistake 'discount_factor' "${reinforce[@]}" trainer.reinforce.discount_factor=0.9
expect 0 'fits' "$kedge" plan "${reinforce[@]:1}" trainer.reinforce.discount_factor=1.0
mistake 'words\.txt' "${reinforce[@]}" reward.sources.mood.kind=lexicon reward.sources.mood.file=words.txt
mistake 'rollouts.keep: expected all, none or every:n with n of at least 1, found "every:0"' "${reinforce[@]}" rollouts.keep=every:0
mistake 'rollouts.keep: expected all, none or every:n' "${rs[@]}" rollouts.keep=few
mistake 'pretrained_checkpoint.restore_from_path' "${reinforce[@]}" pretrained_checkpoint.restore_from_path=nowhere
[ -e no ] && fail "a run that never began left a folder: $(find no)"

exit $((failures > 0))
