# Sourced by the tests of online training, after train_support.sh: prompts, a reward that counts the letter a, and short forms.
for i in $(seq 40); do
  echo "{\"text\": \"$(printf 'b%.0s' $(seq $((i % 5 + 1)))) c\", \"number\": $i}"
done >prompts.jsonl
head -n 8 prompts.jsonl >val_prompts.jsonl
# Everything but the reward. Only EOS ends an answer: of the usual <extra_id_1> this tokenizer would read the letter a. Two epochs of ten steps; a step has four prompts with four answers each.
online=("${common[@]}" pretrained_checkpoint.restore_from_path=lm model.encoder_seq_length=64 model.optim.lr=1e-3 model.optim.sched.name=constant \
  'model.data.data_prefix={train: [prompts.jsonl], validation: [val_prompts.jsonl], test: [val_prompts.jsonl]}')
for_reinforce=(model.global_batch_size=8 model.reinforce.num_rollout_samples=4 model.reinforce.num_val_samples=8 model.reinforce.length_params.max_length=16 \
  'model.reinforce.sampling_params.end_strings=[]'   trainer.reinforce.max_epochs=2 trainer.reinforce.val_check_interval=2)
for_rs=(model.global_batch_size=2 model.rs.num_rollout_samples=4 model.rs.num_val_samples=8 model.rs.length_params.max_length=16 \
  'model.rs.sampling_params.end_strings=[]'   trainer.rs.max_epochs=2 trainer.rs.val_check_interval=2)
rule=(reward.sources.letters.kind=regex reward.sources.letters.use=count reward.sources.letters.pattern=a)
reinforce=("$kedge" reinforce "${online[@]}" "${for_reinforce[@]}")
rs=("$kedge" rs "${online[@]}" "${for_rs[@]}")
# same_online FOLDER OTHER: as same_runs, and what every step recorded. (A run that is killed while it writes a record may leave a piece beside it.)
same_online() {
  same_runs "$1" "$2"
  diff -rq -x '.*.tmp' "$1/rollouts" "$2/rollouts" || fail "the rollouts of $1 and $2 differ"
}
# steps_done FOLDER: how many steps are in its metrics.
steps_done() {
  local steps
  steps=$(grep -cs '"train/step_time"' "$1/metrics.jsonl")
  echo "${steps:-0}"  # nothing is counted where there is no file yet
}
# wait_for_step FOLDER PROCESS STEPS: until the run has done so many, or is over.
wait_for_step() {
  while kill -0 "$2" 2>/dev/null && [ "$(steps_done "$1")" -lt "$3" ]; do sleep 0.02; done
}
# ends PROCESS LOG: waits for what was started in the background, and returns its exit code. A minute is enough: what takes longer hangs.
ends() {
  for _ in $(seq 1200); do
    kill -0 "$1" 2>/dev/null || { wait "$1"; return; }
    sleep 0.05
  done
  fail "process $1 does not end: $(cat "$2")"
  kill -9 "$1" $(ranks_below "$1")
  return 124
}
# ranks_below PROCESS: of what mpirun has started, those that are kedge.
ranks_below() {
  local child
  for child in $(pgrep -P "$1"); do
    [ "$(readlink "/proc/$child/exe")" = "$kedge" ] && echo "$child"
    ranks_below "$child"
  done
}
# start_server LOG COMMAND...: a server in the background, ready when this returns; sets $server and $port.
start_server() {
  local log=$1
  shift
  : >"$log"
  "$@" >"$log" 2>&1 &
  server=$!
  for _ in $(seq 400); do
    grep -qE "kill -SIGINT [0-9]+|^ready" "$log" && break
    sleep 0.05
  done
  port=$(sed -nE 's/.*(metrics at|ready at) http:\/\/[^:]*:([0-9]+).*/\2/p' "$log")
  [ -n "$port" ] || { cat "$log"; fail "$* did not become ready"; }
}
# end_server: and nobody speaks of it.
end_server() {
  kill -9 "$server" 2>/dev/null
  wait "$server" 2>/dev/null
}
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
# A port below those that the system gives to callers: one that calls a server which is away could otherwise be given the server's own.
free_port() { python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import fault_support; print(fault_support.free_port())' "$here/../net"; }
# replays FOLDER: one process computes the recorded steps again, from the first on; all values of the 10th are within 1e-5 of the record
replays() {
  "$kedge" replay "$1" --step 9 --json 2>/dev/null >replay.json || fail "$1 does not replay: $(cat replay.json)"
  python3 - "$1" replay.json <<'PY' || fail "$1 replays with other numbers"
import json, sys
found = {quantity["name"]: quantity.get("largest_ignored", 0) for quantity in json.load(open(sys.argv[2]))["quantities"]}
most = max(found, key=found.get)
print(f"{sys.argv[1]}: replayed by one process, the largest relative difference is {found[most]:.2g}, in {most}; in the loss {found['update loss']:.2g}")
assert found["log-probs"] > 0 and found[most] < 1e-5, found
PY
}
