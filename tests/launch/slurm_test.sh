#!/usr/bin/env bash
# The scripts of launch/slurm under a real Slurm: jobs that end well, a critic that is killed, jobs that are queued again, an actor that fails.
# slurm_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
cli=$here/../cli
. "$cli/commands_support.sh"
. "$here/slurm_support.sh"
trap 'stop_cluster; kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
start_cluster
. "$cli/train_support.sh"
. "$here/launch_support.sh"
trap 'stop_cluster; kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
KEDGE_HOME=$(realpath "$here/../..")
export KEDGE_HOME OMP_NUM_THREADS=1
# shellcheck disable=SC2034  # `submit` reads them
scripts=$KEDGE_HOME/launch/slurm sbatch_options=()
long=("${for_reinforce[@]}" trainer.reinforce.max_epochs=5 "${for_reward[@]}")
for_ppo+=(trainer.ppo.max_epochs=6)

# Two that are left alone; an actor that fails, a server that cannot start, a setting that is missing
submit whole reinforce.sbatch "${long[@]}"
submit ppo ppo.sbatch "${for_ppo[@]}" "${for_critic[@]}"
submit wrong rs.sbatch model.rs.no_such_key=1 "${for_reward[@]}"
KEDGE_REWARD_MODEL=nowhere submit unserved rs.sbatch "${for_rs[@]}" "${for_reward[@]}"
KEDGE_PROMPTS='' submit unset rs.sbatch
job_ends whole COMPLETED 0
[ -f whole/actor/model/model.safetensors ] || fail 'it leaves no model'
[ "$(stat -c %a whole/token)" = 600 ] || fail "the token has mode $(stat -c %a whole/token)"
job_ends ppo COMPLETED 0
job_ends wrong FAILED 2
grep -q no_such_key wrong.log || fail "it does not say what is wrong: $(cat wrong.log)"
job_ends unserved FAILED 2
grep -q 'the reward server ended with 2 before it was ready' unserved.log || fail "it does not say what is wrong: $(cat unserved.log)"
job_ends unset FAILED 2
grep -q 'not set: KEDGE_PROMPTS' unset.log || fail "it does not say what is missing: $(cat unset.log)"

# Three components; ranks on two nodes of a component, and on one. They run while the next are looked at
submit separate ppo_separate.sbatch "${for_ppo[@]}" "${for_critic[@]}" "${for_reward[@]}"
sbatch_options=(--ntasks=1 : --nodes=2 --ntasks-per-node=1)
submit rs rs.sbatch "${for_rs[@]}" "${for_reward[@]}"
sbatch_options=(--ntasks-per-node=2)
KEDGE_MODEL=lm KEDGE_TRAIN=train.jsonl KEDGE_VAL=val.jsonl submit sft sft.sbatch "${common[@]}" model.data.train_ds.global_batch_size=4 \
  model.data.train_ds.micro_batch_size=2 model.data.validation_ds.global_batch_size=4 trainer.sft.val_check_interval=15
# A critic of two ranks
sbatch_options=(--ntasks-per-node=2 --ntasks=2 : --ntasks-per-node=1)
submit served_by_two ppo.sbatch "${for_ppo[@]}" "${for_critic[@]}" model.sharding=all
# shellcheck disable=SC2034
sbatch_options=()
KEDGE_MODEL=lm KEDGE_TRAIN=pairs.jsonl KEDGE_VAL=val_pairs.jsonl submit rm rm.sbatch "${common[@]}" model.global_batch_size=4 model.micro_batch_size=2
KEDGE_MODEL=lm KEDGE_TRAIN=pairs.jsonl KEDGE_VAL=val_pairs.jsonl submit dpo dpo.sbatch "${common[@]}" model.global_batch_size=4 model.micro_batch_size=2 \
  trainer.dpo.val_check_interval=5
for i in $(seq 12); do echo "{\"prompt\": \"b c \", \"completion\": \"$([ $((i % 2)) = 0 ] && echo ab || echo c)\", \"label\": $([ $((i % 2)) = 0 ] && echo true || echo false)}"; done >marked.jsonl
KEDGE_MODEL=lm KEDGE_TRAIN=marked.jsonl KEDGE_VAL=marked.jsonl submit kto kto.sbatch "${common[@]}" model.global_batch_size=4 model.micro_batch_size=2 \
  trainer.kto.val_check_interval=1

# The weights sharded over two nodes: one run is left alone, the other loses a node, is queued again, and ends with the same bits
sbatch_options=(--ntasks=1 : --nodes=2 --ntasks-per-node=1)
submit sharded_whole reinforce.sbatch model.sharding=all "${long[@]}"
job_ends sharded_whole COMPLETED 0
submit sharded reinforce.sbatch model.sharding=all "${long[@]}"
wait_for_steps sharded 5
lost=$(scontrol --oneliner show job "${job_of[sharded]}" | sed -n '2s/.* NodeList=\([^ ]*\).*/\1/p')
lost=$(scontrol show hostnames "$lost" | tail -n 1)
scontrol update nodename="$lost" state=down reason=test
# Slurm queues it again, unless the script, whose actor is gone, has ended first: then somebody has to.
for _ in $(seq 300); do
  state=$(field_of sharded JobState)
  case $state in PENDING | FAILED | NODE_FAIL | CANCELLED) break ;; esac
  sleep 0.1
done
scontrol update nodename="$lost" state=resume 2>/dev/null  # unless it is back by itself
[ "$state" = PENDING ] || scontrol requeue "${job_of[sharded]}"
start_now sharded
sbatch_options=()

# Queued again by hand: Slurm ends all of it with SIGTERM
submit requeued reinforce.sbatch "${long[@]}"
wait_for_steps requeued 5
scontrol requeue "${job_of[requeued]}"
start_now requeued
# and once more, by the signal that comes before the time limit
wait_for_log requeued 'was queued again, for the 1. time'
wait_for_steps requeued 15
scancel --batch --signal=USR1 "${job_of[requeued]}"
wait_for_log requeued "job ${job_of[requeued]} is queued again"
start_now requeued
# A critic that is killed; then the job is queued again, and critic and policy go on from the same step
submit widowed ppo.sbatch "${for_ppo[@]}" "${for_critic[@]}"
wait_for_steps widowed 5
kill -9 "$(pid_of widowed critic)"
wait_for_log widowed 'the critic server died with 137; in 1 s it is started again, 1 of 5 times'
wait_for_steps widowed 12
scontrol requeue "${job_of[widowed]}"
start_now widowed

job_ends sharded COMPLETED 0
grep -q 'resumed from' "sharded/logs/actor-${job_of[sharded]}_0.log" || fail "it does not resume: $(cat sharded/logs/actor*)"
same_launched sharded_whole sharded
[ -f "$(last_of sharded/actor)/state/state.1.safetensors" ] || fail 'the rank of the second node wrote no part of the state'
job_ends requeued COMPLETED 0
[ "$(grep -c 'resumed from' "requeued/logs/actor-${job_of[requeued]}_0.log")" = 2 ] || fail "it does not go on twice: $(cat requeued/logs/actor*)"
same_launched whole requeued
job_ends widowed COMPLETED 0
grep -q 'resumed from' "widowed/logs/actor-${job_of[widowed]}_0.log" || fail "it does not go on: $(cat widowed/logs/actor*)"
same_launched ppo widowed
same_critics ppo/critic widowed/critic
for name in separate rs sft rm dpo kto served_by_two; do job_ends $name COMPLETED 0; done
grep -q 'of 2 ranks' served_by_two/logs/critic-*.log || fail "the critic did not have two ranks: $(cat served_by_two/logs/critic-*)"
cmp ppo/actor/model/model.safetensors separate/actor/model/model.safetensors || fail 'a reward server beside the critic teaches something else'
for name in rs/actor sft; do grep -q '"ranks": 2' $name/run.json || fail "$name did not have two ranks: $(cat $name/run.json)"; done
exit $((failures > 0))
