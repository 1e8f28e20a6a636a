#!/usr/bin/env bash
# kedge ppo on one and on two ranks: the same prompts and answers, and rewards, values and losses equal up to the order of sums. ppo_ranks_test.sh KEDGE MPIRUN...
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
served=() # what starts the critic, and its settings
on() { # ranks, name, setting...: with a critic NAME_critic of its own, that ends with it
  local ranks=$1 name=$2 code
  shift 2
  start_server "${name}_critic.log" "${served[@]}" "${serve_critic[@]}" "${critic_settings[@]}" exp_manager.explicit_log_dir="${name}_critic" trainer.ppo.port=0
  "${mpirun[@]}" -n "$ranks" "${ppo[@]}" model.optim.lr=3e-4 exp_manager.explicit_log_dir="$name" remote_critic_rm.critic.port="$port" "$@"
  code=$?
  kill -INT "$(sed -nE 's/.*kill -SIGINT ([0-9]+)/\1/p' "${name}_critic.log" | tail -n 1)"
  wait "$server" || echo "the critic ends with $?"
  return $code
}
critic_settings=()
# close NAME OTHER: prompts and answers are equal; all that is computed is within 1e-5 of one another. The ranks' gradients are added in another order than one
# rank adds them, so weights differ by roundings of about 1e-7, which grow over 20 steps. Advantages are divided by their deviation, of about 0.02 here, and differ
# by as much more: 1e-4 for them and for the loss.
close() {
  python3 - "$@" <<'PY' || fail "$1 and $2 differ"
import json, sys
one, other = sys.argv[1:3]
most = {}
def near(name, a, b, where, limit=1e-5):
    difference = abs(a - b) / max(1, abs(a))
    most[name] = max(most.get(name, 0), difference)
    assert difference < limit, (where, name, a, b)
for step in range(20):
    rows, others = ([json.loads(line) for line in list(open(f"{folder}/rollouts/step-{step}.jsonl"))[1:]] for folder in (one, other))
    assert len(rows) == len(others) == 8
    for row, match in zip(rows, others):
        where = (step, row["slot"], row["sample"])
        for name in ("prompt_id", "slot", "sample", "prompt", "response", "ids", "prompt_length", "finished", "trains"):
            assert row[name] == match[name], (where, name, row[name], match[name])
        for name in ("reward", "kl", "kl_sum", "reward_with_kl"):
            near(name, row[name], match[name], where)
        near("advantage", row["advantage"], match["advantage"], where, 1e-4)
        for name in ("logprobs", "reference", "values", "returns", "advantages"):
            assert len(row[name]) == len(match[name]) > 0
            for a, b in zip(row[name], match[name]):
                near(name, a, b, where, 1e-4 if name == "advantages" else 1e-5)
metrics = [[line for line in map(json.loads, open(f"{folder}/metrics.jsonl"))] for folder in (one, other)]
assert len(metrics[0]) == len(metrics[1])
losses = 0
for a, b in zip(*metrics):
    assert a["step"] == b["step"] and sorted(name for name in a if not name.startswith("timers/")) == sorted(name for name in b if not name.startswith("timers/")), (a, b)
    if "train_optim/loss" in a:
        losses += 1
        near("loss", a["train_optim/loss"], b["train_optim/loss"], a["step"], 1e-4)
        near("ratio", a["train_optim/ppo_ratio"], b["train_optim/ppo_ratio"], a["step"])
        if losses % 2 == 1:
            assert a["train_optim/ppo_ratio"] == b["train_optim/ppo_ratio"] == 1, (a, b)  # of a step's first update
assert losses == 40, losses
updates = [[line for line in map(json.loads, open(f"{folder}_critic/metrics.jsonl"))] for folder in (one, other)]
assert len(updates[0]) == len(updates[1]) == 40
for a, b in zip(*updates):
    near("the critic's loss", a["train/loss"], b["train/loss"], a["step"])
print(f"{one} and {other}: {losses} losses; largest differences: " + ", ".join(f"{name} {value:.2g}" for name, value in most.items()))
PY
}
expect 0 'done: step 20 of 20' on 1 one
expect 0 'done: step 20 of 20' on 2 two
close one two
# Prompts from a queue: whoever answers them, the answers are the same.
expect 0 'done: step 20 of 20' on 2 queue trainer.ppo.batch_iterator.use_flask=true trainer.ppo.batch_iterator.port=0 model.ppo.rollout_micro_batch_size=1
close one queue
# The same number of ranks gives the same bits
expect 0 'done: step 20 of 20' on 2 twin
same_online two twin
same_critics two_critic twin_critic
# Whatever is sharded
for kind in none gradients all; do
  expect 0 'done: step 20 of 20' on 2 sharded_$kind model.sharding=$kind
  cmp two/model/model.safetensors sharded_$kind/model/model.safetensors || fail "with model.sharding=$kind the weights differ"
  diff -rq two/rollouts sharded_$kind/rollouts || fail "with model.sharding=$kind the rollouts differ"
  diff <(numbers_of two) <(numbers_of sharded_$kind) || fail "with model.sharding=$kind the numbers differ"
  same_critics two_critic sharded_${kind}_critic
done
# Ranks that compute the policy together, and that generate in another layout
expect 0 'done: step 20 of 20' on 2 split model.tensor_model_parallel_size=2
close one split
expect 0 'done: step 20 of 20' on 2 resharded model.sharding=all model.generation.tensor_parallel_size=2
expect 0 'done: step 20 of 20' on 1 recomputed model.ppo.logprobs=trainer
close recomputed resharded
# A critic whose ranks compute it together, sharded in addition, and resumed by one process
served=("${mpirun[@]}" -n 2) critic_settings=(model.tensor_model_parallel_size=2)
expect 0 'done: step 20 of 20' on 1 tensor_critic
close one tensor_critic
expect 0 'done: step 8' on 1 critic_begun trainer.ppo.max_steps=8
served=("${mpirun[@]}" -n 4) critic_settings=(model.tensor_model_parallel_size=2 model.sharding=all)
expect 0 'done: step 20 of 20' on 1 shared_critic
close one shared_critic
served=() critic_settings=()
expect 0 'done: step 20 of 20' on 1 critic_begun
close one critic_begun
# Begun on two ranks, resumed on two and on one
expect 0 'done: step 8' on 2 begun trainer.ppo.max_steps=8
cp -r begun alone && cp -r begun_critic alone_critic
expect 0 'ranks: 2 -> 1 \(batches are the same on any number of ranks\)' on 1 alone
close one alone
expect 0 'done: step 20 of 20' on 2 begun
same_online two begun
same_critics two_critic begun_critic
# The critic goes away, and a signal comes, as a launcher passes it on to all ranks: whoever waits for the critic ends the job, and the run goes on later as if
# nothing had been
start_server signalled_critic.log "${serve_critic[@]}" exp_manager.explicit_log_dir=signalled_critic trainer.ppo.port=0
"${mpirun[@]}" -n 2 "${ppo[@]}" model.optim.lr=3e-4 exp_manager.explicit_log_dir=signalled remote_critic_rm.critic.port="$port" >signalled.log 2>&1 &
pid=$!
wait_for_step signalled $pid 5
end_server
for _ in $(seq 400); do
  [ "$(grep -c 'is unreachable' signalled.log)" -gt 0 ] && break
  sleep 0.05
done
kill -USR1 $(ranks_below $pid)
wait $pid
code=$?
[ $code = 138 ] || fail "a signal while the critic is away: exit code $code: $(cat signalled.log)"
grep -qE "SIGUSR1 received while the critic server localhost:$port \(" signalled.log || fail "it does not say why it ends: $(cat signalled.log)"
expect 0 'resumed from signalled/checkpoints' on 2 signalled
same_online two signalled
same_critics two_critic signalled_critic
# A mistake on every rank is one error
expect 2 'remote_critic_rm.combine_rm_and_critic_server is false, but critic_infer .* gives rewards' on 2 no remote_critic_rm.combine_rm_and_critic_server=false "${rule[@]}"
# A critic that the ranks hold together
held() { # ranks, name, setting...
  local ranks=$1 name=$2
  shift 2
  "${mpirun[@]}" -n "$ranks" "${inside[@]}" "${rule[@]}" model.optim.lr=3e-4 local_critic.model.micro_batch_size=1 exp_manager.explicit_log_dir="$name" "$@"
  local code=$?
  ln -sfn "$name/critic" "${name}_critic"  # where close looks for it
  return $code
}
same_held() { # folder, other: whatever the ranks share, so not the files of their states
  cmp "$1/model/model.safetensors" "$2/model/model.safetensors" || fail "the policies of $1 and $2 differ"
  diff -rq "$(critic_last "$1/critic")/model" "$(critic_last "$2/critic")/model" || fail "the critics of $1 and $2 differ"
  diff -rq "$1/rollouts" "$2/rollouts" || fail "the rollouts of $1 and $2 differ"
  for numbers in "" /critic; do
    diff <(numbers_of "$1$numbers") <(numbers_of "$2$numbers") || fail "the numbers of $1$numbers and $2$numbers differ"
  done
}
expect 0 'done: step 20 of 20' held 1 held_one
expect 0 'done: step 20 of 20' held 2 held_none local_critic.model.sharding=none
close held_one held_none
for kind in optimizer gradients all; do
  expect 0 'done: step 20 of 20' held 2 held_$kind local_critic.model.sharding=$kind
  same_held held_none held_$kind
done
# The policy's ranks compute it together; the critic's do not.
expect 0 'done: step 20 of 20' held 2 held_split model.tensor_model_parallel_size=2 local_critic.model.sharding=all
close held_one held_split
# Every rank writes its part of the critic's checkpoints. Begun on two ranks, resumed on two and on one
expect 0 'done: step 8' held 2 held_begun trainer.ppo.max_steps=8 local_critic.model.sharding=all
[ -e "$(critic_last held_begun/critic)/state/state.1.safetensors" ] || fail 'rank 1 wrote no part of the critic'
cp -r held_begun held_alone
expect 0 'ranks: 2 -> 1' held 1 held_alone
close held_one held_alone
expect 0 'done: step 8' held 1 held_grown trainer.ppo.max_steps=8
expect 0 'ranks: 1 -> 2' held 2 held_grown
close held_one held_grown
# A rank is killed, and the run resumes with another sharding.
"${mpirun[@]}" -n 2 "${inside[@]}" "${rule[@]}" model.optim.lr=3e-4 local_critic.model.micro_batch_size=1 exp_manager.explicit_log_dir=held_begun >killed.log 2>&1 &
pid=$!
wait_for_step held_begun $pid 13
kill -9 "$(ranks_below $pid | tail -n 1)" || fail "no rank to kill: $(cat killed.log)"
wait $pid && fail 'a run lost a rank and went on'
expect 0 'resumed from held_begun/checkpoints/.* at step 1[0-9]' held 2 held_begun local_critic.model.sharding=gradients
same_held held_none held_begun
expect 2 'local_critic.model.sharding_group: 3 ranks do not divide the 2 ranks of the job' held 2 no local_critic.model.sharding_group=3
critic_bytes() { "$kedge" plan "${inside[@]:1}" "${rule[@]}" --no-time --mesh 1x2 --json "$@" 2>/dev/null | grep -oE '"critic_bytes": ?[0-9]+' | tr -dc 0-9; }
[ "$(critic_bytes local_critic.model.sharding=optimizer)" -lt "$(critic_bytes local_critic.model.sharding=none)" ] || fail 'a sharded critic is planned to take as much as a complete one'
exit $((failures > 0))
