#!/usr/bin/env bash
# kedge ppo as a user meets it, with a random model and a random judge over a tokenizer of a few letters: the critic on a server, with and without the
# rewards, and in the process; one that does not fit, one that misbehaves, one that goes away. ppo_test.sh KEDGE CONFIGS
set -uo pipefail
here=$(realpath "$(dirname "$0")")
configs=$(realpath "$2")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
has() { # file, pattern...: each is there
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$file" || fail "no /$pattern/ in $file"
  done
}
# alone NAME SETTING...: the same with a critic of its own, NAME_critic, that ends with it; settings that begin with critic: are the critic's.
alone() {
  local name=$1 code word for_actor=() for_critic=()
  shift
  for word in "$@"; do
    if [ "${word#critic:}" != "$word" ]; then for_critic+=("${word#critic:}"); else for_actor+=("$word"); fi
  done
  start_critic "${name}_critic" "${for_critic[@]}"
  on "$name" "${for_actor[@]}"
  code=$?
  kill -INT "$server"
  wait "$server" || echo "the critic ends with $?"
  return $code
}

# The critic's server gives rewards too
expect 0 'done: step 20 of 20, model in whole/model' alone whole
for file in config.yaml metrics.jsonl samples.jsonl log.txt run.json summary.json model/config.json model/tokenizer.json model/model.safetensors; do
  [ -s "whole/$file" ] || fail "no whole/$file"
done
for name in train_optim/{loss,ppo_ratio,ppo_ratio_clamped,ppo_clip_fraction,scaled_entropy,grad_norm,lr} train_rollouts/{rewards,rewards_std,rewards/critic,init_policy_kl} \
  train_rollouts/{rewards_with_kl,advantages_mean,advantages_std,returns_mean,returns_std,values_mean,values_std,values_loss,values_explained} \
  train_rollouts/{response_lengths,generation_length,consumed_samples,consumed_rollouts,epoch} val_rollouts/{rewards,rewards/critic,init_policy_kl} \
  timers/{rollout_time,generate,critic_wait,train_time}; do
  has whole/metrics.jsonl "\"$name\""
done
# The first step worked out by hand, with a critic that has learned nothing yet; of all steps what the penalty takes.
start_critic fresh_critic
python3 - "$here/../net" "$port" <<'PY' || fail 'not what PPO says'
import json, math, sys
sys.path.insert(0, sys.argv[1])
from fault_support import ask, output_of, token_body

def near(a, b, where):
    assert abs(a - b) < 1e-5 * max(1, abs(b)), (where, a, b)  # the one side comes of fp32

def moments(numbers):
    mean = sum(numbers) / len(numbers)
    return mean, math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))

metrics = list(map(json.loads, open("whole/metrics.jsonl")))
rows = list(map(json.loads, list(open("whole/rollouts/step-0.jsonl"))[1:]))
width = max(len(row["ids"]) for row in rows)
status, body = ask(int(sys.argv[2]), "POST", "/v2/models/critic_infer/infer", token_body([row["ids"] for row in rows], width))
assert status == 200, body
values, rewards = output_of(body, "values"), output_of(body, "rewards")
all_advantages, all_returns, all_values = [], [], []
for place, row in enumerate(rows):
    near(row["reward"], rewards[place], row)
    begin, count = place * width + row["prompt_length"] - 1, len(row["ids"]) - row["prompt_length"]
    expected = values[begin:begin + count]
    given = [0.0] * (count - 1) + [row["reward"]]  # the policy is the reference: no penalty yet
    advantage, advantages = 0.0, [0.0] * count
    for t in reversed(range(count)):
        following = expected[t + 1] if t + 1 < count else 0.0
        advantage = given[t] + following - expected[t] + 0.95 * advantage
        advantages[t] = advantage
    all_advantages.append(advantages)
    all_returns += [a + v for a, v in zip(advantages, expected)]
    all_values += expected
first = next(line for line in metrics if "train_rollouts/values_mean" in line)
flat = [number for advantages in all_advantages for number in advantages]
for name, numbers in (("advantages", flat), ("returns", all_returns), ("values", all_values)):
    mean, deviation = moments(numbers)
    near(first[f"train_rollouts/{name}_mean"], mean, name)
    near(first[f"train_rollouts/{name}_std"], deviation, name)
near(first["train_rollouts/values_loss"], 0.5 * sum((r - v) ** 2 for r, v in zip(all_returns, all_values)) / len(flat), "values_loss")
mean, deviation = moments(flat)
for row, advantages in zip(rows, all_advantages):
    near(row["advantage"], sum((number - mean) / math.sqrt(deviation ** 2 + 1e-8) for number in advantages) / len(advantages), row)
for step in range(20):
    for row in map(json.loads, list(open(f"whole/rollouts/step-{step}.jsonl"))[1:]):
        kl = sum(abs(a - b) for a, b in zip(row["logprobs"], row["reference"]))
        near(row["kl_sum"], kl, row)
        near(row["reward_with_kl"], (row["reward"] - 0.01 * kl) / (len(row["ids"]) - row["prompt_length"]), row)
PY
end_server
# ratios FOLDER UPDATES: nothing has moved before the first of a step's updates: its ratios are 1 to the last bit. Before the others something has.
ratios() {
  python3 - "$@" <<'PY' || fail "$1: ratios"
import json, sys
folder, updates = sys.argv[1], int(sys.argv[2])
steps = {}
for line in map(json.loads, open(f"{folder}/metrics.jsonl")):
    if "train_optim/ppo_ratio" in line:
        steps.setdefault(line["step"], []).append(line)
assert len(steps) == 20 and all(len(lines) == updates for lines in steps.values()), {step: len(lines) for step, lines in steps.items()}
for lines in steps.values():
    assert [lines[0][f"train_optim/ppo_{name}"] for name in ("ratio", "ratio_clamped", "clip_fraction")] == [1, 1, 0], lines[0]
if updates > 1:
    assert all(lines[1]["train_optim/ppo_ratio"] != 1 for lines in steps.values()), steps
PY
}
ratios whole 2
expect 0 'done: step 20 of 20' alone one_batch model.global_batch_size=8
ratios one_batch 1
expect 0 'done: step 20 of 20' alone twin
same_online whole twin
same_critics whole_critic twin_critic
expect 0 'done: step 20 of 20' alone padded remote_critic_rm.pad_to_length=64
cmp whole/model/model.safetensors padded/model/model.safetensors || fail 'wider rows teach something else'

# Rewards from elsewhere: the same judge on a server of its own, or in this process, teaches the same
start_server judge.log "${serve_judge[@]}" inference.port=0
judge=$server
separate=(remote_critic_rm.combine_rm_and_critic_server=false critic:trainer.ppo.combine_rm_and_critic_server=false)
expect 0 'done: step 20 of 20' alone apart "${separate[@]}" remote_critic_rm.reward_model.port="$port"
cmp whole/model/model.safetensors apart/model/model.safetensors || fail 'the same rewards by another server teach something else'
same_critics whole_critic apart_critic
has apart/metrics.jsonl '"train_rollouts/rewards/remote_rm"'
kill -9 "$judge"
wait "$judge" 2>/dev/null
expect 0 'done: step 20 of 20' alone by_rule "${separate[@]}" "${rule[@]}"
has by_rule/metrics.jsonl '"train_rollouts/rewards/letters"'
cmp -s whole/model/model.safetensors by_rule/model/model.safetensors && fail 'another reward teaches the same'
# Beside what the critic's server says, with a weight.
expect 0 'done: step 20 of 20' alone mixed reward.sources.judge.kind=critic "${rule[@]}" reward.sources.letters.weight=0.5
has mixed/metrics.jsonl '"train_rollouts/rewards/judge"' '"train_rollouts/rewards/letters"'

# A critic in the process
expect 0 'done: step 20 of 20' "${inside[@]}" exp_manager.explicit_log_dir=inside reward.sources.judge.kind=model reward.sources.judge.folder=judge
cmp whole/model/model.safetensors inside/model/model.safetensors || fail 'a critic in the process teaches something else'
expect 0 'done: step 20 of 20' "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir=inside_rule
cmp by_rule/model/model.safetensors inside_rule/model/model.safetensors || fail 'a critic in the process teaches something else by a rule'

# Signals: the step ends and is saved, by the critic too
stopped() { # folder, whole, command...: stopped in the middle, then resumed
  local folder=$1 whole=$2
  shift 2
  "$@" exp_manager.explicit_log_dir="$folder" >"$folder.log" 2>&1 &
  local pid=$!
  wait_for_step "$folder" $pid 5
  signal_before "$folder" $pid 17 TERM || fail "SIGTERM came too late: $(tail -n 3 "$folder.log")"
  wait $pid
  local code=$?
  [ $code = 143 ] || fail "exit $code after SIGTERM: $(cat "$folder.log")"
  expect 0 'done: step 20 of 20' "$@" exp_manager.explicit_log_dir="$folder"
  grep -q 'resumed from .* at step' "$folder/log.txt" || fail "$folder was not resumed: $(cat "$folder/log.txt")"
  same_online "$whole" "$folder"
}
start_critic term_critic
stopped term whole "${ppo[@]}" remote_critic_rm.critic.port="$port"
end_server
same_critics whole_critic term_critic
stopped inside_term inside_rule "${inside[@]}" "${rule[@]}"

# What PPO has besides
count() { grep -c "$2" "$1/metrics.jsonl"; }
lines_of() { # folder, number of updates of the policy, of the critic
  [ "$(count "$1" '"train_optim/loss"')" = "$2" ] || fail "$1: not $2 updates: $(count "$1" '"train_optim/loss"')"
  [ "$(count "$1_critic" '"train/loss"')" = "$3" ] || fail "$1: not $3 updates of the critic: $(count "$1_critic" '"train/loss"')"
}
few=(trainer.ppo.max_steps=4 model.optim.weight_decay=0)
lines_of whole 40 40
expect 0 'done: step 4 of 4' alone epochs "${few[@]}" trainer.ppo.ppo_epochs=2
lines_of epochs 16 16
expect 0 'done: step 4 of 4' alone apart_epochs "${few[@]}" trainer.ppo.ppo_epochs=2 trainer.ppo.critic_epochs=3
lines_of apart_epochs 16 24
# The critic learns from two rounds of answers first. Their prompts are handed back: after the first step eight are consumed.
expect 0 'done: step 20 of 20' alone warm trainer.ppo.critic_warmup_steps=2
lines_of warm 40 44
python3 - <<'PY' || fail 'a warm-up counts what it should not'
import json
rounds = [line for line in map(json.loads, open("warm/metrics.jsonl")) if "train_rollouts/rewards" in line]
assert [line["step"] for line in rounds] == [0, 0] + list(range(20)), [line["step"] for line in rounds]
steps = rounds[2:]
assert [line["train_rollouts/consumed_samples"] for line in steps] == [8 * (step + 1) for step in range(20)], steps
assert [line["train_rollouts/consumed_rollouts"] for line in steps] == [8 * (step + 3) for step in range(20)], steps
prompts = [[json.loads(line)["prompt_id"] for line in list(open(f"warm/rollouts/step-{step}.jsonl"))[1:]] for step in range(20)]
assert all(len(set(prompts[step])) == 8 for step in range(20)), prompts
# The first step has the epoch's third batch, since two were looked at before; from the second step on all is as without a warm-up.
plain = [[json.loads(line)["prompt_id"] for line in list(open(f"whole/rollouts/step-{step}.jsonl"))[1:]] for step in range(20)]
assert prompts[0] == plain[2] and prompts[1:] == plain[1:], (prompts, plain)
PY
expect 0 'done: step 4 of 4' alone bonus "${few[@]}" model.ppo.entropy_bonus=0.1
expect 0 'done: step 4 of 4' alone no_bonus "${few[@]}"
cmp -s bonus/model/model.safetensors no_bonus/model/model.safetensors && fail 'an entropy bonus changes nothing'
python3 - <<'PY' || fail 'not the entropy'
import json
lines = [line for line in map(json.loads, open("bonus/metrics.jsonl")) if "train_optim/scaled_entropy" in line]
# Of a policy that is random over the seven ids: at most 0.1 x ln 7 = 0.195, and not far below.
assert len(lines) == 8 and all(0.1 < line["train_optim/scaled_entropy"] < 0.196 for line in lines), lines
PY
# EOS may not come before the end: all answers are cut. The policy does not learn from them, the critic does.
cut=("${few[@]}" model.ppo.length_params.min_length=16)
expect 0 '0 of 8 answers ended by themselves' alone cut "${cut[@]}"
cmp lm/model.safetensors cut/model/model.safetensors || fail 'answers that were cut have taught something'
cmp -s judge/model.safetensors "$(critic_last cut_critic)/model/model.safetensors" && fail 'the critic has learned nothing from answers that were cut'
lines_of cut 8 8
expect 0 'done: step 4 of 4' alone kept "${cut[@]}" trainer.ppo.unfinished=keep
cmp -s lm/model.safetensors kept/model/model.safetensors && fail 'unfinished=keep taught nothing'
lora=(model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=2)
expect 0 'done: step 20 of 20' alone lora "${lora[@]}" "${lora[@]/#/critic:}"
for folder in lora "$(last_of lora)" "$(critic_last lora_critic)"; do
  [ -s "$folder/model/adapter_model.safetensors" ] || fail "no adapters in $folder"
  [ -e "$folder/model/model.safetensors" ] && fail "$folder holds the network too"
done
ratios lora 2
expect 0 '"merged": true' "$kedge" export lm merged --adapter lora/model --merge

# No steps; a run that is done; another number of steps
expect 0 'done: step 0 of 0' alone nothing trainer.ppo.max_steps=0
cmp lm/model.safetensors nothing/model/model.safetensors || fail 'a run without steps changed the model'
cp whole/summary.json summary.json
cp -r "$(critic_last whole_critic)" critic_before
expect 0 'the run is complete; a larger trainer.ppo.max_epochs' alone whole
cmp whole/summary.json summary.json || fail 'a complete run that was started again lost its summary'
diff -r "$(critic_last whole_critic)/model" critic_before/model || fail 'a complete run that was started again changed its critic'
cp -r whole longer && cp -r whole_critic longer_critic
expect 0 'resumed from longer/checkpoints/.*' alone longer trainer.ppo.max_epochs=5
has longer_critic.log 'restored to actor_step 20: step 40, 20 training calls'
[ "$(steps_done longer)" = 25 ] || fail "not 25 steps: $(steps_done longer)"

# What does not fit together is told before weights are read
expect 2 'remote_critic_rm.combine_rm_and_critic_server is true, but critic_infer of the critic server localhost:[0-9]+ gives no rewards; .*trainer.ppo.combine_rm_and_critic_server must be equal' \
  alone no critic:trainer.ppo.combine_rm_and_critic_server=false
expect 2 'remote_critic_rm.combine_rm_and_critic_server is false, but critic_infer of the critic server localhost:[0-9]+ gives rewards; .*trainer.ppo.combine_rm_and_critic_server must be equal' \
  alone no remote_critic_rm.combine_rm_and_critic_server=false "${rule[@]}"
mkdir others
sed 's/"a": 0, "b": 1/"b": 0, "a": 1/' letters/tokenizer.json >others/tokenizer.json
cp letters/tokenizer_config.json others/
"$kedge" init stranger --shape tiny --tokenizer others --num-labels 1 --seed 3 --threads 1 >/dev/null 2>&1
expect 2 'critic_infer of the critic server .* has a different tokenizer from the policy' alone no critic:pretrained_checkpoint.restore_from_path=stranger
expect 2 'takes rows of up to 32 tokens \(its model.encoder_seq_length\), but 64 may be sent' alone no critic:model.encoder_seq_length=32
rm -rf no no_critic
expect 2 'remote_critic_rm.combine_rm_and_critic_server is true, but none of reward.sources has the kind critic' "${ppo[@]}" "${rule[@]}" exp_manager.explicit_log_dir=no
expect 2 'reward.sources: one has the kind critic, but remote_critic_rm.combine_rm_and_critic_server is false' "${ppo[@]}" exp_manager.explicit_log_dir=no \
  reward.sources.judge.kind=critic remote_critic_rm.combine_rm_and_critic_server=false
expect 2 'reward.sources: no reward is configured, and a local_critic returns none' "${inside[@]}" exp_manager.explicit_log_dir=no
expect 2 'reward.sources: one has the kind critic, but a local_critic returns no rewards' "${inside[@]}" exp_manager.explicit_log_dir=no reward.sources.judge.kind=critic
expect 2 'pad_to_length: 63 is less than the maximum length of a prompt and its answer, 64' "${ppo[@]}" exp_manager.explicit_log_dir=no remote_critic_rm.pad_to_length=63
expect 2 'gae_lambda' "${ppo[@]}" exp_manager.explicit_log_dir=no trainer.ppo.gae_lambda=1.5
expect 2 'the 8 answers of a step \(8 prompts x 1\) do not divide into updates of 3' "${ppo[@]}" exp_manager.explicit_log_dir=no model.global_batch_size=3
[ -e no ] && fail "a run that never began left a folder: $(find no)"

# A critic that says what no critic should ends the run, and what was saved before is good to go on from
spoiled() { # name, fault, pattern
  start_critic "$1_critic"
  local critic=$server critic_port=$port
  start_server "$1_spoiler.log" python3 "$here/critic_spoiler.py" "$port" "$2" 5
  expect 1 "$3" on "$1"
  end_server
  [ -d "$(last_of "$1")" ] || fail "$1: nothing was saved before"
  server=$critic port=$critic_port
  expect 0 "resumed from $1/checkpoints/" on "$1"
  kill -INT "$server"
  wait "$server"
  same_online whole "$1"
  same_critics whole_critic "$1_critic"
}
spoiled nan_values nan_values 'critic_infer of the critic server .* returned values that are not finite for prompt [0-9]+'
spoiled nan_loss nan_loss 'critic_train of the critic server .*: the loss is -?nan'
spoiled train_refused train_refused 'critic_train of the critic server .*: HTTP 500: the critic has no memory left'
spoiled narrow narrow 'critic_infer of the critic server .*: expected values of [0-9]+ rows of [0-9]+ tokens or more, found \[[0-9]+,[0-9]+\]'
spoiled refused refused 'critic_infer of the critic server .*: HTTP 500: the critic is not at home'
# One that is not kedge's cannot be told what it must have learned, nor go back; else all is the same.
start_critic foreign_critic
critic=$server
start_server spoiler.log python3 "$here/critic_spoiler.py" "$port" foreign 0
expect 0 'critic_infer of the critic server .* does not report its tokenizer; it must be the policy' on foreign trainer.ppo.max_steps=10
expect 0 'cannot restore its critic: it stays as it is, and may not be the one of step 10' on foreign
end_server
server=$critic
end_server
# It cannot say what its last loss was, which is missing in the first step after a resume.
grep -q '"step": 10, .*"train_rollouts/critic_loss"' whole/metrics.jsonl || fail 'the loss of the critic is not logged'
for run in whole foreign; do
  cp $run/metrics.jsonl $run.metrics
  sed -i -E '/"step": 10,/s/"train_rollouts\/critic_loss": [^,]*, //' $run/metrics.jsonl
done
same_online whole foreign
for run in whole foreign; do mv $run.metrics $run/metrics.jsonl; done
# Without rewards a row is masked, as with any source of them.
start_critic unrewarded_critic
critic=$server
start_server spoiler.log python3 "$here/critic_spoiler.py" "$port" nan_rewards 0
expect 0 'rows got no reward; the first: reward.sources.critic: prompt [0-9]+: the critic server .* gave -?nan' on unrewarded "${few[@]}" trainer.ppo.health.invariants=warn
end_server
server=$critic
end_server
cmp lm/model.safetensors unrewarded/model/model.safetensors || fail 'something was learned without rewards'

# One that goes away is waited for, as long as is said, and no longer
start_critic gone_critic
"${ppo[@]}" exp_manager.explicit_log_dir=gone remote_critic_rm.critic.port="$port" remote_critic_rm.wait_limit=1 >gone.log 2>&1 &
run=$!
wait_for_step gone $run 5
end_server
wait $run
code=$?
[ $code = 1 ] || fail "a critic that stays away: exit code $code: $(cat gone.log)"
has gone.log "the critic server localhost:$port did not come back within 1 s .*remote_critic_rm.critic.ip and .port"
[ -d "$(last_of gone)" ] || fail 'nothing was saved before the critic went'
expect 1 "the critic server localhost:$port did not become ready within 1 s .*remote_critic_rm.critic.ip and .port" on gone remote_critic_rm.wait_limit=1
start_critic gone_critic
expect 0 'resumed from gone/checkpoints/' on gone
same_online whole gone
# A signal ends the wait, at the start and later.
end_server
begin_signalled() { # the program itself in the background, and no shell around it
  "${ppo[@]}" exp_manager.explicit_log_dir=signalled remote_critic_rm.critic.port="$port" >signalled.log 2>&1 &
  run=$!
}
signalled() { # signal, code: the run waits
  for _ in $(seq 400); do
    grep -q 'is unreachable' signalled.log && break
    sleep 0.05
  done
  kill -s "$1" $run
  wait $run
  code=$?
  [ $code = "$2" ] || fail "SIG$1 during a wait: exit code $code: $(cat signalled.log)"
  has signalled.log "SIG$1 received while the critic server localhost:$port \("
}
begin_signalled
signalled TERM 143
start_critic signalled_critic
begin_signalled
wait_for_step signalled $run 5
end_server
signalled USR1 138
start_critic signalled_critic
expect 0 'resumed from signalled/checkpoints/' on signalled
kill -INT "$server"
wait "$server"
same_online whole signalled
same_critics whole_critic signalled_critic

# The files of the reference, at a toy's size, in both modes; its programs' names
data='model.data.data_prefix={train: [prompts.jsonl], validation: [val_prompts.jsonl], test: [val_prompts.jsonl]}'
as_reference() { # name, for both: combine or not; settings of the actor
  local name=$1 combines=$2 code
  shift 2
  start_server "$name.log" "$kedge" serve_ppo_critic "$configs/reference/gpt_ppo_critic.yaml" pretrained_checkpoint.restore_from_path=judge trainer.accelerator=cpu trainer.threads=1 \
    trainer.ppo.port=0 exp_manager.explicit_log_dir="${name}_critic" model.encoder_seq_length=512 trainer.ppo.combine_rm_and_critic_server="$combines"
  "$kedge" train_gpt_ppo_actor "$configs/reference/gpt_ppo_actor.yaml" pretrained_checkpoint.restore_from_path=lm trainer.accelerator=cpu trainer.threads=1 \
    exp_manager.explicit_log_dir="$name" model.encoder_seq_length=512 model.ppo.num_rollout_samples=16 model.global_batch_size=8 trainer.ppo.max_steps=2 \
    remote_critic_rm.critic.ip=localhost remote_critic_rm.critic.port="$port" remote_critic_rm.combine_rm_and_critic_server="$combines" "$data" "$@"
  code=$?
  end_server
  return $code
}
expect 0 'done: step 2 of 2' as_reference reference True
start_server judge.log "${serve_judge[@]}" inference.port=0 model.encoder_seq_length=512
judge=$server
expect 0 'done: step 2 of 2' as_reference reference_apart False remote_critic_rm.reward_model.ip=localhost remote_critic_rm.reward_model.port="$port"
kill -9 "$judge"
wait "$judge" 2>/dev/null

# Plans and configurations
expect 0 '20 in total, 5 per epoch of 40 prompts; validation every 2, saving every 2' "$kedge" plan "${ppo[@]:1}"
expect 0 '"algorithm": "ppo"' "$kedge" plan ppo whole/config.yaml --json
expect 0 '^ *trainer\.ppo\.critic_warmup_steps +integer +0$' "$kedge" config ppo
"$kedge" config ppo --yaml >ppo.yaml || fail 'no configuration of ppo'
expect 0 'per epoch of 40 prompts' "$kedge" plan ppo ppo.yaml "${online[@]}" model.ppo.num_rollout_samples=10 model.global_batch_size=10

exit $((failures > 0))
