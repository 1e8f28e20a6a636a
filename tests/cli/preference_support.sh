# Sourced by the tests of kedge dpo and kedge kto, after train_support.sh: responses marked good or bad, and short forms.
for i in $(seq 60); do
  answer=$(printf 'a%.0s' $(seq $((i % 4 + 1))))
  echo "{\"prompt\": \"$(printf 'b%.0s' $(seq $((i % 5 + 1)))) \", \"completion\": \"$answer $([ $((i % 3)) = 0 ] && echo c || echo ab)\", \"label\": $([ $((i % 3)) = 0 ] && echo false || echo true)}"
done >marked.jsonl
head -n 12 marked.jsonl >val_marked.jsonl
for i in $(seq 60); do # unlike those of train_support.sh, all different
  answer=$(printf 'a%.0s' $(seq $((i % 7 + 1))))
  echo "{\"prompt\": \"$(printf 'b%.0s' $(seq $((i % 9 + 1)))) \", \"chosen\": \"$answer ab\", \"rejected\": \"$answer c\"}"
done >choices.jsonl
head -n 12 choices.jsonl >val_choices.jsonl
preference() { # name, files' ending: the words of a command, in an array of its name
  local -n words=$1
  words=("$kedge" "$1" "${common[@]}" pretrained_checkpoint.restore_from_path=lm model.optim.lr=3e-3 \
    "model.data.data_prefix={train: [$2.jsonl], validation: [val_$2.jsonl], test: [val_$2.jsonl]}" model.global_batch_size=4 model.micro_batch_size=2 \
    "trainer.$1.max_epochs=4" "trainer.$1.val_check_interval=2" exp_manager.checkpoint_callback_params.save_top_k=2)
}
preference dpo choices
preference kto marked
