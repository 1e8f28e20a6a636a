#!/usr/bin/env bash
# Runs report to a real MLflow server and to a real wandb (offline), both of which are then asked for every number of metrics.jsonl: of a run
# that was left alone, of one whose server was killed in the middle, and of one that was killed itself. trackers_test.sh KEDGE PYTHON
set -uo pipefail
here=$(realpath "$(dirname "$0")")
python=$2
[ -x "$python" ] || { echo "skipped: no $python; scripts/setup --tests installs it"; exit 77; }
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
unset MLFLOW_TRACKING_URI MLFLOW_TRACKING_TOKEN MLFLOW_TRACKING_USERNAME WANDB_MODE WANDB_DIR WANDB_API_KEY KEDGE_PYTHON
export MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false MLFLOW_DISABLE_TELEMETRY=true WANDB_ERROR_REPORTING=false HOME=$folder
mlflow_port=$(free_port)
uri=http://127.0.0.1:$mlflow_port

# A session of its own, so that all its processes can be killed at once.
start_mlflow() {
  setsid "$python" -m mlflow server --backend-store-uri "sqlite:///$folder/mlflow.db" --artifacts-destination "$folder/artifacts" --host 127.0.0.1 \
    --port "$mlflow_port" --workers 1 >>mlflow.log 2>&1 &
  mlflow_server=$!
  for _ in $(seq 600); do
    curl -sf "$uri/health" >/dev/null && return
    sleep 0.1
  done
  tail -n 20 mlflow.log
  fail "the MLflow server did not become ready"
  exit 1
}
kill_mlflow() {
  kill -9 -- -"$mlflow_server" 2>/dev/null
  wait "$mlflow_server" 2>/dev/null
}
trap 'kill_mlflow; kill -9 $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
mlflow=(exp_manager.create_mlflow_logger=true exp_manager.mlflow_logger_kwargs.tracking_uri="$uri" exp_manager.mlflow_logger_kwargs.experiment_name="the test")
wandb=(exp_manager.create_wandb_logger=true exp_manager.wandb_logger_kwargs.project=kedge exp_manager.wandb_logger_kwargs.offline=true
  exp_manager.wandb_logger_kwargs.python="$python")
both=("${mlflow[@]}" "${wandb[@]}" exp_manager.tracker_wait_s=60)

# A run that takes its time, so that trackers are reached while it goes on: a reward takes some milliseconds. Sixty steps; a checkpoint every twenty.
cat >slow.py <<'PY'
import json, sys, time
for line in sys.stdin:
    row = json.loads(line)
    time.sleep(0.008)
    print(json.dumps({"id": row["id"], "reward": row["response"].count("a")}), flush=True)
PY
slow=("${reinforce[@]}" reward.sources.letters.kind=command "reward.sources.letters.command=[python3, $folder/slow.py]" trainer.reinforce.max_epochs=6
  trainer.reinforce.val_check_interval=5 trainer.reinforce.save_interval=20 "${both[@]}")

# What cannot work is told before the run.
expect 2 'tracking_uri: create_mlflow_logger requires the address' "${sft[@]}" exp_manager.explicit_log_dir=refused exp_manager.create_mlflow_logger=true
expect 2 'https is not supported' "${sft[@]}" exp_manager.explicit_log_dir=refused "${mlflow[@]}" exp_manager.mlflow_logger_kwargs.tracking_uri=https://a
expect 2 'cannot load the wandb package .*pip install wandb' env PYTHONPATH= "${sft[@]}" exp_manager.explicit_log_dir=refused "${wandb[@]}" \
  exp_manager.wandb_logger_kwargs.python=/usr/bin/python3

# A run while the server is away ends as any other; kedge track sends what it wrote, and says so while the server is still away.
expect 0 'MLflow at .*: has not confirmed [0-9]+ lines of metrics.jsonl.*kedge track away' "${sft[@]}" exp_manager.explicit_log_dir=away "${mlflow[@]}" "${wandb[@]}" \
  exp_manager.tracker_wait_s=10 trainer.sft.max_steps=6
expect 1 'waiting lines are still not there' "$kedge" track away
start_mlflow
expect 0 'MLflow at .*: sent [0-9]+ lines; everything in away/metrics.jsonl is there' "$kedge" track away

# Both there all the time.
expect 0 'step 60 of 60' "${sft[@]}" exp_manager.explicit_log_dir=plain "${both[@]}"
# Numbers that JSON lacks; and a run that is tracked later on only.
echo '{"step": 61, "time": 1763179200.25, "odd/nan": "NaN", "odd/inf": "Infinity", "odd/minus": "-Infinity", "odd/small": 5e-324, "odd/third": 0.3333333333333333}' \
  >>plain/metrics.jsonl
expect 0 'MLflow at .*: sent 1 line;' "$kedge" track plain
cp -r plain later
rm -r later/trackers later/wandb
expect 0 'W&B: sent [0-9]+ lines;' "$kedge" track later exp_manager.mlflow_logger_kwargs.experiment_name=later

# The server is killed in the middle of a run and comes back before its end. (A run of a process that is halted takes no step meanwhile.)
"${slow[@]}" exp_manager.explicit_log_dir=server_killed >server_killed.log 2>&1 &
pid=$!
wait_for_step server_killed $pid 20
kill_mlflow
wait_for_step server_killed $pid 40
kill -STOP $pid
start_mlflow
kill -CONT $pid
wait $pid || fail "a run whose MLflow server was killed ends with $?: $(tail -n 5 server_killed.log)"
grep -q 'MLflow at .*The run continues' server_killed.log || fail "the run did not say that its server was away"
grep -q 'MLflow at .*is reachable again and has caught up' server_killed.log || fail "the run did not say that its server was back"

# The run is killed three times, well behind a checkpoint, and resumed. The second time wandb is killed before it.
resumes=0
: >killed.log
for steps in 35 38 56; do
  "${slow[@]}" exp_manager.explicit_log_dir=killed >>killed.log 2>&1 &
  pid=$!
  while kill -0 $pid 2>/dev/null && [ "$(grep -c 'resumed from' killed.log)" -lt $resumes ]; do sleep 0.01; done  # only then its file is cut
  resumes=$((resumes + 1))
  wait_for_step killed $pid $steps
  [ $steps != 38 ] || kill -9 "$(pgrep -P $pid -f 'import wandb')" || fail "no wandb process to kill"
  kill -9 $pid
  wait $pid 2>/dev/null
  [ $? = 137 ] || fail "the run was not killed"
done
expect 0 'step 60 of 60|the run is complete' "${slow[@]}" exp_manager.explicit_log_dir=killed
[ "$(grep -c 'resumed from' killed.log)" = 2 ] || fail "killed.log: $(grep -c 'resumed from' killed.log) resumes"

# The process of wandb is killed, and the run goes on with another.
"${slow[@]}" exp_manager.explicit_log_dir=wandb_killed >wandb_killed.log 2>&1 &
pid=$!
wait_for_step wandb_killed $pid 30
kill -9 "$(pgrep -P $pid -f 'import wandb')" || fail "no wandb process to kill"
wait $pid || fail "a run whose wandb process was killed ends with $?"
grep -q 'W&B: the wandb process .*signal 9.*The run continues' wandb_killed.log || fail "the run did not say that wandb was killed"

# A critic's server has trackers of its own.
start_critic critic "${both[@]}"
expect 0 'step 6 of 6' on actor trainer.ppo.max_steps=6 remote_critic_rm.combine_rm_and_critic_server=true
kill -INT "$server"
wait "$server" || fail "the critic ends with $?: $(tail -n 5 critic.log)"

MLFLOW_TRACKING_URI=$uri "$python" "$here/trackers_test.py" away plain later server_killed killed wandb_killed critic || failures=$((failures + 1))
exit $((failures > 0))
