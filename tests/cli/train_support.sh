# Sourced by the tests of training commands, after commands_support.sh: a small model over letters, rows to train on, and short forms.
make_letters letters
"$kedge" init lm --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
for i in $(seq 60); do
  answer=$(printf 'a%.0s' $(seq $((i % 4 + 1))))
  echo "{\"input\": \"$(printf 'b%.0s' $(seq $((i % 5 + 1))))\", \"output\": \"$answer c ab\"}"
done >train.jsonl
head -n 12 train.jsonl >val.jsonl
for i in $(seq 60); do
  answer=$(printf 'a%.0s' $(seq $((i % 4 + 1))))
  echo "{\"prompt\": \"b c \", \"chosen\": \"$answer ab\", \"rejected\": \"$answer c\"}"
done >pairs.jsonl
head -n 12 pairs.jsonl >val_pairs.jsonl

fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
# Where programs compute. KEDGE_TEST_GPU=1: on the GPU, each start with the same bits.
compute=(trainer.accelerator=cpu trainer.precision=32 trainer.threads=1)
[ -z "${KEDGE_TEST_GPU:-}" ] || compute=(trainer.accelerator=gpu trainer.precision="${KEDGE_TEST_PRECISION:-bf16}" trainer.deterministic=true)
common=("${compute[@]}" exp_manager.create_tensorboard_logger=false model.optim.lr=1e-2 model.optim.sched.warmup_steps=2)
# Arrays, so that a command in the background is the program itself and no shell around it.
sft=("$kedge" sft "${common[@]}" model.restore_from_path=lm model.data.train_ds.file_path=train.jsonl model.data.validation_ds.file_path=val.jsonl \
    model.data.train_ds.global_batch_size=4 model.data.train_ds.micro_batch_size=2 trainer.sft.max_epochs=4 trainer.sft.val_check_interval=2 \
    exp_manager.checkpoint_callback_params.save_top_k=2)
rm=("$kedge" rm "${common[@]}" pretrained_checkpoint.restore_from_path=lm \
    'model.data.data_prefix={train: [pairs.jsonl], validation: [val_pairs.jsonl], test: [val_pairs.jsonl]}' \
    model.global_batch_size=4 model.micro_batch_size=2 trainer.rm.max_epochs=4 trainer.rm.val_check_interval=2 \
    exp_manager.checkpoint_callback_params.save_top_k=2)
# Sends a signal to a run that stands before STEP: it is halted meanwhile, so that it cannot end first. Fails where it has come further.
signal_before() { # folder, process, step, signal
  kill -STOP "$2" || return 1
  local step
  step=$(grep -o '"step": [0-9]*' "$1/metrics.jsonl" | tail -n 1 | tr -dc 0-9)
  [ "${step:-0}" -lt "$3" ] && kill -"$4" "$2"
  local sent=$?
  kill -CONT "$2"
  return $sent
}
# What killed runs must have seen for the test to say anything: FOLDER KILLS HITS SAVES. A run that ended before a kill came was not hit.
enough_kills() {
  echo "$1: $2 kills, $3 hit, $4 of them during a save; $(grep -c resumed "$1.log") resumes"
  [ "$3" -ge $(($2 / 3 + 1)) ] || fail "$1: only $3 of $2 kills hit"
  [ "$(grep -c resumed "$1.log")" -ge 1 ] || fail "$1: nothing was resumed"
}
last_of() { echo "$1"/checkpoints/*-last; }
# What a run leaves that must not depend on when it was stopped: weights, state, and numbers without times.
same_runs() {
  diff -rq "$1/model" "$2/model" || fail "the models of $1 and $2 differ"
  cmp "$(last_of "$1")/state/state.safetensors" "$(last_of "$2")/state/state.safetensors" || fail "the states of $1 and $2 differ"
  cmp "$(last_of "$1")/state/state.json" "$(last_of "$2")/state/state.json" || fail "the counters of $1 and $2 differ"
  diff <(numbers_of "$1") <(numbers_of "$2") >/dev/null || fail "the numbers of $1 and $2 differ: $(diff <(numbers_of "$1") <(numbers_of "$2") | head -n 4)"
  diff <(sed -E 's/"time": [^,]*, //' "$1/samples.jsonl") <(sed -E 's/"time": [^,]*, //' "$2/samples.jsonl") >/dev/null || fail "the samples of $1 and $2 differ"
}
numbers_of() { sed -E 's/"(time|timers\/[a-z_]+|train\/step_time)": [^,}]*(, )?//g' "$1/metrics.jsonl"; }
