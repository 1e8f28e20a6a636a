#!/usr/bin/env bash
# kedge dpo and kedge kto as people use them: layouts of rows, losses, adapters, validation, what is kept of the reference, plans, and mistakes.
# preference_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/preference_support.sh"
short=(trainer.dpo.max_steps=4 exp_manager.explicit_log_dir)
value() { # folder, name: the last of this metric
  grep -oE "\"$2\": [^,}]*" "$1/metrics.jsonl" | tail -n 1 | sed 's/.*: //'
}

# It learns: the better responses become more likely than the worse ones, in training and on other rows.
for name in dpo kto; do
  declare -n command=$name
  expect 0 'done: step 60 of 60' "${command[@]}" exp_manager.explicit_log_dir=$name
  for split in train validation; do
    awk -v margin="$(value $name $split/rewards/margins)" 'BEGIN { exit !(margin > 0.05) }' || fail "$name: no margin in $split: $(value $name $split/rewards/margins)"
  done
  expect 0 "$name" "$kedge" inspect $name
  expect 0 "$name.html" "$kedge" report $name --out $name.html
  grep -q 'Implicit rewards' $name.html || fail "no chart of the rewards in $name.html"
  expect 0 'resident|fits' "$kedge" plan "${command[@]:1}"
  expect 0 'the run is complete' "${command[@]}" exp_manager.explicit_log_dir=$name
done
[ "$(grep -c '"train/loss"' dpo/metrics.jsonl)" = 60 ] || fail 'not one loss a step'
# The first loss is that of no preference: log 2, and 1/2.
head -n 1 dpo/metrics.jsonl | grep -qE '"train/loss": 0\.69314' || fail "the first loss of dpo: $(head -n 1 dpo/metrics.jsonl)"
head -n 1 kto/metrics.jsonl | grep -qE '"train/loss": 0\.5,' || fail "the first loss of kto: $(head -n 1 kto/metrics.jsonl)"

# Every loss, by NeMo-Aligner's and TRL's names
for loss in preference_loss=dpo loss_type=sigmoid loss_type=ipo loss_type=hinge preference_loss=rpo_sq preference_loss=rpo_bwd_kl preference_loss=rpo_fwd_kl; do
  expect 0 'done: step 4' "${dpo[@]}" "${short[@]}=by_${loss/=/_}" model.dpo.$loss model.dpo.beta=0.3
done
expect 0 'done: step 4' "${dpo[@]}" "${short[@]}=smooth" model.dpo.label_smoothing=0.1 model.dpo.sft_loss_weight=0.5 model.dpo.average_log_probs=true
expect 0 'done: step 4' "${kto[@]}" exp_manager.explicit_log_dir=weights trainer.kto.max_steps=4 model.kto.desirable_weight=1.5 model.kto.undesirable_loss_weight=0.7

# Adapters: the reference is the network without them
expect 0 'done: step 4' "${dpo[@]}" "${short[@]}=lora" model.peft.peft_scheme=lora
[ -f lora/model/adapter_config.json ] || fail 'no adapter'
grep -oE '"train/rewards/margins": [^,]*' lora/metrics.jsonl | head -n 1 | grep -q ': 0.0$' || fail 'new adapters already differ from the reference'

# What is on disk serves another run with the same weights and data, and no other.
shared=(model.dpo.reference_cache=disk model.dpo.reference_cache_folder=kept)
expect 0 'reference log-probabilities of' "${dpo[@]}" "${short[@]}=first" "${shared[@]}"
"${dpo[@]}" "${short[@]}=second" "${shared[@]}" model.dpo.beta=0.5 >second.log 2>&1 || fail "$(cat second.log)"
grep -q 'reference log-probabilities of' second.log && fail 'computed again'
"$kedge" init other --shape tiny --tokenizer letters --seed 9 --threads 1 >/dev/null 2>&1
expect 0 'reference log-probabilities of' "${dpo[@]}" "${short[@]}=third" "${shared[@]}" pretrained_checkpoint.restore_from_path=other
[ "$(ls kept | wc -l)" = 2 ] || fail "folders of references: $(ls kept)"
sed 's/ab"/ac"/' choices.jsonl >changed.jsonl
expect 0 'reference log-probabilities of' "${dpo[@]}" "${short[@]}=fourth" "${shared[@]}" 'model.data.data_prefix={train: [changed.jsonl], validation: [val_choices.jsonl], test: [val_choices.jsonl]}'
# A resume needs the reference it started from.
cp -r first resumed
expect 2 'the reference policy would be a different one' "${dpo[@]}" exp_manager.explicit_log_dir=resumed "${shared[@]}" pretrained_checkpoint.restore_from_path=other

# Mistakes
expect 2 'model.dpo.preference_loss: expected .*dpo' "${dpo[@]}" model.dpo.loss_type=kl
expect 2 'model.dpo.label_smoothing' "${dpo[@]}" model.dpo.loss_type=hinge model.dpo.label_smoothing=0.1
expect 2 'model.dpo.reference_cache' "${dpo[@]}" model.dpo.reference_cache=tape
expect 2 'reference_cache_folder: is for reference_cache=disk' "${dpo[@]}" model.dpo.reference_cache_folder=kept
expect 2 'nothing to learn' "${dpo[@]}" model.dpo.preference_loss_weight=0
expect 2 'model.global_batch_size: 1; KTO' "${kto[@]}" model.global_batch_size=1 model.micro_batch_size=1
expect 2 'unknown key|is not a key|did you mean' "${dpo[@]}" model.dpo.betta=1
echo '{"prompt": "b ", "chosen": "a"}' >broken.jsonl
expect 2 'broken.jsonl:1: .*rejected' "${dpo[@]}" 'model.data.data_prefix={train: [broken.jsonl], validation: [broken.jsonl], test: [broken.jsonl]}'
echo '{"prompt": "b ", "completion": "a", "label": 3}' >broken.jsonl
expect 2 'broken.jsonl:1: .*preference' "${kto[@]}" 'model.data.data_prefix={train: [broken.jsonl], validation: [broken.jsonl], test: [broken.jsonl]}'
echo '{"prompt": "b ", "completion": "a", "label": "good"}' >broken.jsonl
expect 2 'broken.jsonl:1: the preference: expected "chosen", "rejected"' "${kto[@]}" 'model.data.data_prefix={train: [broken.jsonl], validation: [broken.jsonl], test: [broken.jsonl]}'
expect 2 'model.dpo.ref_policy_kl_penalty: 0' "${dpo[@]}" model.dpo.beta=0
for _ in $(seq 8); do echo '{"prompt": "b ", "completion": "", "label": true}'; done >empty.jsonl
cat marked.jsonl >>empty.jsonl
expect 0 'done: step 4' "${kto[@]}" exp_manager.explicit_log_dir=empty trainer.kto.max_steps=4 trainer.kto.train_random_sampler=false trainer.kto.max_epochs=1 \
  'model.data.data_prefix={train: [empty.jsonl], validation: [val_marked.jsonl], test: [val_marked.jsonl]}'
# "a" and "b" together are one token: the prompt's last one changes.
for _ in $(seq 8); do echo '{"prompt": "ca", "chosen": "b", "rejected": "c"}'; done >merged.jsonl
merged='model.data.data_prefix={train: [merged.jsonl], validation: [merged.jsonl], test: [merged.jsonl]}'
expect 2 'merged.jsonl:1: .*model.data.prompt_boundary=common' "${dpo[@]}" "${short[@]}=merged" "$merged"
expect 0 'done: step 4' "${dpo[@]}" "${short[@]}=merged" "$merged" model.data.prompt_boundary=common
exit $((failures > 0))
