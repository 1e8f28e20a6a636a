#!/usr/bin/env bash
# kedge serve as a user meets it: how it starts, what it refuses, how it ends. serve_test.sh KEDGE CONFIGS
set -uo pipefail
configs=$(realpath "$2")
. "$(dirname "$0")/commands_support.sh"
make_letters letters
"$kedge" init judge --shape tiny --tokenizer letters --num-labels 1 --threads 1 2>/dev/null >/dev/null
"$kedge" init policy --shape tiny --tokenizer letters --threads 1 2>/dev/null >/dev/null

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# start LOG COMMAND...: a server in the background, ready when this returns; sets $server and $port.
start() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 &
  server=$!
  for _ in $(seq 200); do
    grep -q "kill -SIGINT $server" "$log" && break
    sleep 0.05
  done
  port=$(sed -n 's/.*metrics at http:\/\/[^:]*:\([0-9]*\)\/metrics.*/\1/p' "$log")
  [ -n "$port" ] || { cat "$log"; fail "$* did not become ready"; }
}
# stop SIGNAL: it must end with 0 within ten seconds.
stop() {
  kill -"$1" "$server"
  for _ in $(seq 200); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 "$server" 2>/dev/null && fail "$1 did not end the server"
  wait "$server"
  local status=$?
  [ $status = 0 ] || fail "$1: exit $status"
}
# get PATH: status and body, by bash alone.
get() {
  exec 5<>"/dev/tcp/127.0.0.1/$port" || return
  printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" >&5
  cat <&5
  exec 5>&-
}

# post PATH BODY: the same for a call.
post() {
  exec 5<>"/dev/tcp/127.0.0.1/$port" || return
  local token=/tmp/kedge-$(id -u)/$port.token
  [ -e "$token" ] && token=$(cat "$token") || token=none
  printf 'POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' "$1" "$token" ${#2} "$2" >&5
  cat <&5
  exec 5>&-
}
rows='{"inputs":[{"name":"tokens","shape":[1,3],"datatype":"INT64","data":[0,1,2]},{"name":"sequence_lengths","shape":[1,1],"datatype":"INT64","data":[3]}]}'
lesson='{"inputs":[{"name":"tokens","shape":[1,3],"datatype":"INT64","data":[0,1,2]},{"name":"returns","shape":[1,2],"datatype":"FP32","data":[0,1]},
  {"name":"prev_values","shape":[1,2],"datatype":"FP32","data":[0.5,0.25]},{"name":"mask","shape":[1,2],"datatype":"FP32","data":[0,1]}]}'

# It serves, says how to reach and stop it, and ends with 0.
for signal in INT TERM; do
  start reward.log "$kedge" serve reward rm_model_file=judge inference.port=0 trainer.threads=1
  expect 0 'reward_model: http://127\.0\.0\.1:[0-9]+/v2/models/reward_model/infer' cat reward.log
  expect 0 '^HTTP/1.1 200 OK' get /v2/health/ready
  expect 0 '"tokenizer_fingerprint"' get /v2/models/reward_model/config
  # Not beyond this machine: the address it listens on is the loopback's alone.
  listens=$(awk -v port="$(printf ':%04X' "$port")" '$2 ~ port "$" && $4 == "0A" {print $2}' /proc/net/tcp /proc/net/tcp6)
  [ "$listens" = "0100007F$(printf ':%04X' "$port")" ] || fail "listens on $listens"
  expect 1 "cannot listen on 127.0.0.1:$port: Address already in use; inference.port sets another port" "$kedge" serve reward rm_model_file=judge inference.port="$port"
  stop $signal
  expect 0 'stopped$' cat reward.log
done

# The critic's folder is its own; a second server in it is refused; resumed, it says so.
start critic.log "$kedge" serve critic pretrained_checkpoint.restore_from_path=judge trainer.ppo.port=0 exp_manager.explicit_log_dir=critic trainer.threads=1
expect 0 '"name":"rewards"' get /v2/models/critic_infer
expect 1 "Address already in use; trainer.ppo.port sets another port, 0 any that is free" \
  "$kedge" serve critic pretrained_checkpoint.restore_from_path=judge trainer.ppo.port="$port" exp_manager.explicit_log_dir=critic_two trainer.threads=1
expect 2 'critic: another run is using this folder' \
  "$kedge" serve critic pretrained_checkpoint.restore_from_path=judge trainer.ppo.port=0 exp_manager.explicit_log_dir=critic
stop INT
expect 2 'critic: holds a critic; exp_manager.resume_if_exists=true continues with it' "$kedge" serve critic pretrained_checkpoint.restore_from_path=judge trainer.ppo.port=0 \
  exp_manager.explicit_log_dir=critic exp_manager.resume_if_exists=false trainer.threads=1
for file in config.yaml run.json log.txt; do [ -s critic/$file ] || fail "no critic/$file"; done
expect 0 '^kedge serve critic from judge' "$kedge" plan critic/config.yaml
expect 0 '^kedge serve reward from judge' "$kedge" plan "$configs/reference/inference_rm.yaml" rm_model_file=judge
start critic.log "$kedge" serve_ppo_critic pretrained_checkpoint.restore_from_path=judge trainer.ppo.port=0 trainer.ppo.combine_rm_and_critic_server=False \
  exp_manager.explicit_log_dir=critic trainer.threads=1
grep -q '"rewards"' <<<"$(get /v2/models/critic_infer)" && fail "a critic without rewards names them"
stop TERM

# A critic gives the rewards of the folder it started from, however they are kept; and goes on only from what it began with.
critic=("$kedge" serve critic trainer.ppo.port=0 trainer.threads=1 model.optim.lr=1e-2 model.optim.sched.warmup_steps=0)
start reward.log "$kedge" serve reward rm_model_file=judge inference.port=0 trainer.threads=1
wanted=$(post /v2/models/reward_model/infer "$rows" | grep -o '"name":"rewards".*"data":[^]]*')
stop INT
for kept in resident swapped lora; do
  how=(trainer.ppo.reward_model=$kept)
  [ $kept = lora ] && how=(model.peft.peft_scheme=lora)
  start $kept.log "${critic[@]}" pretrained_checkpoint.restore_from_path=judge exp_manager.explicit_log_dir=critic_$kept "${how[@]}"
  for _ in 1 2; do
    expect 0 '^HTTP/1.1 200 OK' post /v2/models/critic_train/infer "$lesson"
    rewards=$(post /v2/models/critic_infer/infer "$rows" | grep -o '"name":"rewards".*"data":[^]]*')
    [ -n "$wanted" ] && [ "$rewards" = "$wanted" ] || fail "$kept: rewards $rewards, wanted $wanted"
  done
  stop INT
done
expect 0 'the reward model it started from: resident, [0-9]+ KiB' cat resident.log
expect 0 'the reward model it started from: swapped in for every call, [0-9]+ KiB of host memory at most' cat swapped.log
expect 0 'the reward model it started from: the network without its adapters, nothing more' cat lora.log
"$kedge" init judge2 --shape tiny --tokenizer letters --num-labels 1 --seed 7 --threads 1 2>/dev/null >/dev/null
expect 2 'restore_from_path: not the model that the critic in .*critic_resident started from' \
  "${critic[@]}" pretrained_checkpoint.restore_from_path=judge2 exp_manager.explicit_log_dir=critic_resident
expect 2 'not the model that the critic in .*critic_lora started from' \
  "${critic[@]}" pretrained_checkpoint.restore_from_path=judge exp_manager.explicit_log_dir=critic_lora model.peft.peft_scheme=lora model.seed=7
grep -q judge2 critic_resident/config.yaml critic_resident/run.json && fail "a critic that was refused changed the papers of the run"
start again.log "${critic[@]}" pretrained_checkpoint.restore_from_path=judge exp_manager.explicit_log_dir=critic_resident
expect 0 ': 2 training calls' cat again.log
stop INT

# Without rewards a critic can start from any model; with them it needs a reward model.
expect 2 'policy holds no reward model .*combine_rm_and_critic_server=true needs its rewards' \
  "${critic[@]}" pretrained_checkpoint.restore_from_path=policy exp_manager.explicit_log_dir=critic3
[ -e critic3 ] && fail "a critic that was refused left a folder"
for _ in first second; do
  start fresh.log "${critic[@]}" pretrained_checkpoint.restore_from_path=policy exp_manager.explicit_log_dir=critic3 \
    trainer.ppo.combine_rm_and_critic_server=false
  expect 0 'policy has no score head: the critic starts with a new one, initialized with model.seed=1234' cat fresh.log
  expect 0 '^HTTP/1.1 200 OK' post /v2/models/critic_train/infer "$lesson"
  stop INT
done
expect 0 ': 1 training calls' cat fresh.log
expect 2 'not the model that the critic in .*critic3 started from' "${critic[@]}" pretrained_checkpoint.restore_from_path=policy \
  exp_manager.explicit_log_dir=critic3 trainer.ppo.combine_rm_and_critic_server=false model.seed=7

# What cannot fit is refused at once.
expect 2 'the critic needs .* of memory \(update\), and .* are free. What would fit:' "${critic[@]}" pretrained_checkpoint.restore_from_path=judge \
  exp_manager.explicit_log_dir=critic4 model.micro_batch_size=67108864 model.global_batch_size=67108864
[ -e critic4 ] && fail "a critic that does not fit left a folder"
expect 2 'trainer.precision: 16 is not supported' "${critic[@]}" pretrained_checkpoint.restore_from_path=judge trainer.precision=16

# The reference's names and configurations.
start alias.log "$kedge" serve_reward_model --config-path "$configs/reference" --config-name inference_rm rm_model_file=judge inference.port=0 trainer.threads=1
stop INT
start alias.log "$kedge" serve critic "$configs/reference/gpt_ppo_critic.yaml" pretrained_checkpoint.restore_from_path=judge trainer.ppo.port=0 \
  exp_manager.explicit_log_dir=critic2 trainer.threads=1
stop INT

# What is wrong is said before weights are read.
expect 2 'kedge serve: expected reward or critic first, found "rewards"' "$kedge" serve rewards
expect 2 'missing required key "rm_model_file"' "$kedge" serve reward
expect 2 'rm_model_file: no model nowhere; looked for' "$kedge" serve reward rm_model_file=nowhere
expect 2 'policy.*score' "$kedge" serve reward rm_model_file=policy inference.port=0
expect 2 'ip: 0\.0\.0\.0 can be reached from other machines, and no token is set' "$kedge" serve reward rm_model_file=judge inference.ip=0.0.0.0 inference.port=0
expect 2 'inference.micro_batch_size: renamed to inference_micro_batch_size' "$kedge" serve reward rm_model_file=judge inference.micro_batch_size=4
expect 2 'inference.prot.*port' "$kedge" serve reward rm_model_file=judge inference.prot=5555
expect 2 'standardization: mean and std are required' "$kedge" serve reward rm_model_file=judge model.reward_standardization.enable=true inference.port=0
: >empty
expect 2 'token_file: empty is empty' "$kedge" serve reward rm_model_file=judge inference.port=0 --token-file empty
echo word >token
start token.log "$kedge" serve reward rm_model_file=judge inference.host=0.0.0.0 inference.port=0 --token-file token trainer.threads=1
expect 0 '^HTTP/1.1 401' get /v2/models/reward_model
stop INT
start open.log "$kedge" serve reward rm_model_file=judge inference.ip=0.0.0.0 inference.port=0 --insecure trainer.threads=1
stop INT
expect 0 'inference.max_queue_delay_microseconds' "$kedge" config serve_reward
expect 0 'loss_clip_val' "$kedge" config serve_critic --yaml
expect 0 'token-file' "$kedge" serve --help

[ $failures = 0 ] && echo passed
exit $((failures > 0))
