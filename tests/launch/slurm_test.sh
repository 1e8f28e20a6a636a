#!/usr/bin/env bash
# The scripts of launch/slurm under a real Slurm: jobs that end well, a critic that is killed, jobs that are queued again, an actor that fails.
# slurm_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
cli=$here/../cli
. "$cli/commands_support.sh"
. "$here/slurm_support.sh"
start_cluster
trap 'stop_cluster; kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
. "$cli/train_support.sh"
. "$here/launch_support.sh"
trap 'stop_cluster; kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
KEDGE_HOME=$(realpath "$here/../..")
export KEDGE_HOME OMP_NUM_THREADS=1
# shellcheck disable=SC2034  # submit reads them
scripts=$KEDGE_HOME/launch/slurm sbatch_options=()
long=("${for_reinforce[@]}" trainer.reinforce.max_epochs=5 "${for_reward[@]}")
wait_for_steps() { # RUN STEPS
  for _ in $(seq 600); do
    [ "$(steps_done "$1/actor")" -ge "$2" ] && return
    sleep 0.05
  done
  fail "the job of $1 does not come to step $2: $(tail -n 30 "$1.log" "$1"/logs/*)"
}

# One that is left alone
submit whole reinforce.sbatch "${long[@]}"
job_ends whole COMPLETED 0
[ -f whole/actor/model/model.safetensors ] || fail 'it leaves no model'
[ "$(stat -c %a whole/token)" = 600 ] || fail "the token has mode $(stat -c %a whole/token)"
# Queued again by hand: Slurm ends all of it with SIGTERM
submit requeued reinforce.sbatch "${long[@]}"
wait_for_steps requeued 5
scontrol requeue "$id"
start_now
# and once more, by the signal that comes before the time limit
wait_for_log requeued 'was queued again, for the 1. time'
wait_for_steps requeued 15
scancel --batch --signal=USR1 "$id"
wait_for_log requeued "job $id is queued again"
start_now
job_ends requeued COMPLETED 0
[ "$(grep -c 'resumed from' "requeued/logs/actor-${id}_0.log")" = 2 ] || fail "it does not go on twice: $(cat requeued/logs/actor*)"
same_launched whole requeued

# A critic that is killed
submit ppo ppo.sbatch "${for_ppo[@]}" "${for_critic[@]}"
job_ends ppo COMPLETED 0
submit widowed ppo.sbatch "${for_ppo[@]}" "${for_critic[@]}"
wait_for_steps widowed 5
kill -9 "$(pid_of widowed critic)"
job_ends widowed COMPLETED 0
grep -q 'the critic server died with 137; in 1 s it is started again' widowed.log || fail "it does not say that the critic died: $(cat widowed.log)"
same_launched ppo widowed
same_critics ppo/critic widowed/critic

# An actor that fails, a server that cannot start, a setting that is missing
submit wrong rs.sbatch model.rs.no_such_key=1 "${for_reward[@]}"
job_ends wrong FAILED 2
grep -q no_such_key wrong.log || fail "it does not say what is wrong: $(cat wrong.log)"
KEDGE_REWARD_MODEL=nowhere submit unserved rs.sbatch "${for_rs[@]}" "${for_reward[@]}"
job_ends unserved FAILED 2
KEDGE_PROMPTS='' submit unset rs.sbatch
job_ends unset FAILED 2
grep -q 'not set: KEDGE_PROMPTS' unset.log || fail "it does not say what is missing: $(cat unset.log)"

# Three components; several ranks
submit separate ppo_separate.sbatch "${for_ppo[@]}" "${for_critic[@]}" "${for_reward[@]}"
job_ends separate COMPLETED 0
cmp ppo/actor/model/model.safetensors separate/actor/model/model.safetensors || fail 'a reward server beside the critic teaches something else'
# shellcheck disable=SC2034
sbatch_options=(--ntasks-per-node=2)
KEDGE_MODEL=lm KEDGE_TRAIN=train.jsonl KEDGE_VAL=val.jsonl submit sft sft.sbatch "${common[@]}" model.data.train_ds.global_batch_size=4 \
  model.data.train_ds.micro_batch_size=2 model.data.validation_ds.global_batch_size=4 trainer.sft.val_check_interval=15
job_ends sft COMPLETED 0
KEDGE_MODEL=lm KEDGE_TRAIN=pairs.jsonl KEDGE_VAL=val_pairs.jsonl submit rm rm.sbatch "${common[@]}" model.global_batch_size=4 model.micro_batch_size=2
job_ends rm COMPLETED 0
exit $((failures > 0))
