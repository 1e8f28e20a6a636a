#!/usr/bin/env bash
# A reward server of several ranks gives the rewards of one rank, and ends with all its ranks; a run that has two servers goes on when one of them is killed,
# and ends as a run with one. reward_ranks_test.sh KEDGE MPIRUN
set -uo pipefail
. "$(dirname "$0")/ranks_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
"$kedge" init other --shape tiny --tokenizer letters --num-labels 1 --seed 4 --threads 1 >/dev/null 2>&1

declare -A ports=() jobs_of=()
# serve NAME COMMAND...: a server in the background, ready when this returns.
serve() {
  local name=$1
  shift
  "$@" >"$name.log" 2>&1 &
  jobs_of[$name]=$!
  for _ in $(seq 600); do
    grep -q 'kill -SIGINT' "$name.log" && break
    sleep 0.05
  done
  ports[$name]=$(sed -nE 's/.*metrics at http:\/\/[^:]*:([0-9]+).*/\1/p' "$name.log")
  [ -n "${ports[$name]}" ] || { cat "$name.log"; fail "$name did not become ready"; }
}
first_rank() { sed -nE 's/.*kill -SIGINT ([0-9]+)/\1/p' "$1.log"; }
ends_well() { # name
  ends "${jobs_of[$1]}" "$1.log" || fail "$1 ends with $?: $(cat "$1.log")"
  grep -q ' stopped$' "$1.log" || fail "$1 does not say that it stopped: $(cat "$1.log")"
}
# rewards NAME TEXTS...: as the server gives them, in one call.
rewards() {
  local port=${ports[$1]} texts
  shift
  texts=$(printf '"%s",' "$@")
  curl -s --max-time 60 "localhost:$port/v2/models/reward_model/infer" -d "{\"inputs\":[{\"name\":\"sentences\",\"shape\":[$#,1],\"datatype\":\"BYTES\",\"data\":[${texts%,}]}]}" |
    sed -nE 's/.*"data":\[([^]]*)\].*/\1/p'
}

# Ranks are planned before they are started.
planned() { "$kedge" plan "$@" --json 2>/dev/null | grep -oE '"parameters": ?[0-9]+' | head -n 1 | tr -dc 0-9; }
[ "$(planned "${serve_judge[@]:1}" --mesh 1x2 model.tensor_model_parallel_size=2)" -lt "$(planned "${serve_judge[@]:1}" --mesh 1x2)" ] ||
  fail 'a reward model that two ranks compute together is planned to take as much as a complete one'
[ "$(planned "${serve_critic[@]:1}" --mesh 1x2 model.sharding=all)" -lt "$(planned "${serve_critic[@]:1}" --mesh 1x2 model.sharding=none)" ] ||
  fail 'a sharded critic is planned to take as much as a complete one'
expect 0 '2 ranks' "$kedge" plan "${serve_critic[@]:1}" --mesh 1x2
expect 2 'model.tensor_model_parallel_size: 2 ranks do not divide the 3 ranks of the job' "$kedge" plan "${serve_judge[@]:1}" --mesh 1x3 model.tensor_model_parallel_size=2

texts=(a 'ab c' 'c c c' 'ab ab ab ab ab ab ab ab ab ab ab c' 'b c a' 'bbbbbbbbbbbbb' 'c')
serve one "${serve_judge[@]}" inference.port=0
serve two "${mpirun[@]}" -n 2 "${serve_judge[@]}" inference.port=0
serve three "${mpirun[@]}" -n 3 "${serve_judge[@]}" inference.port=0
serve split "${mpirun[@]}" -n 2 "${serve_judge[@]}" inference.port=0 model.tensor_model_parallel_size=2
wanted=$(rewards one "${texts[@]}")
[ "$(tr -cd , <<<"$wanted" | wc -c)" = 6 ] || fail "the rewards of one rank: $wanted"
for name in two three; do
  [ "$(rewards $name "${texts[@]}")" = "$wanted" ] || fail "the rewards of $name ranks: $(rewards $name "${texts[@]}"), of one: $wanted"
  [ "$(rewards $name a)" = "${wanted%%,*}" ] || fail "one row on $name ranks: $(rewards $name a)"
done
python3 -c '
import sys
one, split = ([float(x) for x in text.split(",")] for text in sys.argv[1:])
sys.exit(max(abs(a - b) for a, b in zip(one, split, strict=True)) > 1e-5)' "$wanted" "$(rewards split "${texts[@]}")" ||
  fail "the rewards of ranks that compute together: $(rewards split "${texts[@]}"), of one: $wanted"
# What a rank cannot compute is the caller's error, and the server goes on.
expect 0 'outside the model' curl -s "localhost:${ports[two]}/v2/models/reward_model/infer" \
  -d '{"inputs":[{"name":"tokens","shape":[1,1],"datatype":"INT64","data":[99999]},{"name":"sequence_lengths","shape":[1,1],"datatype":"INT64","data":[1]}]}'
kill -INT "$(first_rank three)"
ends_well three
# shellcheck disable=SC2046  # several
kill -USR1 $(ranks_below "${jobs_of[split]}") # as mpirun passes it on to all ranks, where it does
ends_well split

# A run with one server, and runs with two, of which one is killed, with one of its ranks or as a whole.
rewarded=("${reinforce[@]}" trainer.reinforce.max_epochs=3 model.reinforce.num_rollout_samples=4)
"${rewarded[@]}" exp_manager.explicit_log_dir=alone remote_rm.port="${ports[one]}" >alone.log 2>&1 || fail "with one server: $(tail -n 5 alone.log)"
"${rewarded[@]}" exp_manager.explicit_log_dir=shared "remote_rm.port=[${ports[one]}, ${ports[two]}]" >shared.log 2>&1 &
run=$!
wait_for_step shared $run 5
calls() { curl -s "localhost:${ports[$1]}/metrics" | sed -nE 's/^kedge_rows_total\{[^}]*\} ([0-9]+).*/\1/p'; }
before=$(calls one)
[ "$(calls two)" -gt 20 ] || fail "the second server had only $(calls two) rows"
mapfile -t pids < <(ranks_below "${jobs_of[two]}" | sort -n)
kill -9 "${pids[1]}"
ends $run shared.log || fail "with two servers, of which one was killed: $(tail -n 20 shared.log)"
grep -qE "warning the reward server localhost:${ports[two]} is unreachable \(.*\); it is left out until it is back" shared.log || fail "nobody names the server: $(cat shared.log)"
[ "$(calls one)" -gt $((before + 100)) ] || fail "the first server had only $(calls one) rows, $before before"
same_runs alone shared
# Each record begins with its settings, of which the servers are a part.
for record in alone/rollouts/step-*.jsonl; do
  cmp <(tail -n +2 "$record") <(tail -n +2 "shared/rollouts/$(basename "$record")") || fail "$record and that of the run with two servers differ"
done
ends "${jobs_of[two]}" two.log && fail 'a server that lost a rank ends with 0'
grep -qE "rank 1 \(pid ${pids[1]} on .*\) was killed" two.log || fail "nobody names the rank: $(cat two.log)"

# Servers of different models, and what cannot be meant.
serve different "${serve_judge[@]}" inference.port=0 rm_model_file=other
expect 2 "the reward server localhost:[0-9]+ and the reward server localhost:[0-9]+ do not serve the same reward_model: model_print is" \
  "${rewarded[@]}" exp_manager.explicit_log_dir=wrong "reward.sources.judge={kind: server, url: ['http://localhost:${ports[one]}', 'http://localhost:${ports[different]}']}"
expect 2 'remote_rm.reward_model.port: 3 ports for 2 hosts' "${rewarded[@]}" exp_manager.explicit_log_dir=wrong 'remote_rm.host=[a, b]' 'remote_rm.port=[1, 2, 3]'
expect 2 'remote_rm.reward_model.port: expected a port from 1 to 65535, or a list of them, found 70000' "${rewarded[@]}" exp_manager.explicit_log_dir=wrong remote_rm.port=70000
expect 2 'reward.sources.judge.url: http://localhost:1 is listed twice' \
  "${rewarded[@]}" exp_manager.explicit_log_dir=wrong 'reward.sources.judge={kind: server, url: ["http://localhost:1", "http://localhost:1"]}'
expect 2 'reward.sources.judge.url: a list of addresses is for kind server' \
  "${rewarded[@]}" exp_manager.explicit_log_dir=wrong 'reward.sources.judge={kind: http, url: ["http://localhost:1", "http://localhost:2"]}'
expect 2 'model.tensor_model_parallel_size: 2 ranks do not divide the 3 ranks of the job' "${mpirun[@]}" -n 3 "${serve_judge[@]}" inference.port=0 model.tensor_model_parallel_size=2
kill -INT "${jobs_of[one]}" "${jobs_of[different]}"
ends_well one
ends_well different
exit $((failures > 0))
