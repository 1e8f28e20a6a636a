#!/usr/bin/env bash
# The scripts of launch/local: all algorithms with their servers, a server that is killed, one that cannot start, an actor that fails, signals.
# local_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
cli=$here/../cli
. "$cli/commands_support.sh"
. "$cli/train_support.sh"
. "$here/launch_support.sh"
local_scripts=$(realpath "$here/../../launch/local")
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1
long=("${for_reinforce[@]}" trainer.reinforce.max_epochs=12 "${for_reward[@]}")
for_ppo+=(trainer.ppo.max_epochs=6)

declare -A process_of=()
# begin RUN SCRIPT ARGUMENT...: in the background, what it says in RUN.log or $output. (A shell starts what is there with SIGINT
# ignored, nohup all of this with SIGHUP.)
begin() {
  KEDGE_RUN=$1 setsid env --default-signal=INT,HUP "$local_scripts/$2" "${@:3}" >"${output:-$1.log}" 2>&1 &
  process_of[$1]=$!
}
# wait_for_steps RUN STEPS: until the actor has done so many, or the script is over.
wait_for_steps() { wait_for_step "$1/actor" "${process_of[$1]}" "$2"; }
ends_with() { # RUN CODE
  wait "${process_of[$1]}"
  local code=$?
  [ $code = "$2" ] || fail "the run $1 ends with $code, wanted $2: $(tail -n 30 "$1.log")"
  check_ended "$1"
}

# What is asked for and what is missing
expect 0 'KEDGE_REWARD_MODEL   the reward model' "$local_scripts/rs.sh" --help
expect 2 'not set: KEDGE_RUN; --help' "$local_scripts/rs.sh"
expect 2 'not set: KEDGE_RUN KEDGE_POLICY; --help' env -u KEDGE_POLICY "$local_scripts/ppo_separate.sh"
expect 2 'not set: KEDGE_PROMPTS; --help' env -u KEDGE_PROMPTS KEDGE_RUN=none "$local_scripts/ppo.sh"
expect 2 '--critic: this script starts no such server; it has: reward' env KEDGE_RUN=none "$local_scripts/reinforce.sh" --critic
expect 2 'KEDGE: no program nowhere/kedge' env KEDGE_RUN=none KEDGE=nowhere/kedge "$local_scripts/reinforce.sh"

# All of them end well, leave a model and no process; the token is for the owner alone
begin reinforce reinforce.sh "${long[@]}"
begin rs rs.sh "$here/../../configs/tiny/rs.yaml" '~reward.sources' trainer.rs.max_steps=2 model.data.add_bos=false "${common[@]}" "${for_reward[@]}"
begin grpo grpo.sh "$here/../../configs/tiny/grpo.yaml" --recipe dapo '~reward.sources' trainer.grpo.max_steps=2 trainer.grpo.val_check_interval=1 \
  trainer.grpo.dynamic_sampling_max_batches=2 model.grpo.num_rollout_samples=2 model.grpo.length_params.max_length=16 model.data.add_bos=false "${common[@]}" \
  "${for_reward[@]}"
mkdir "anna's \\ data" && cp prompts.jsonl "anna's \\ data"
KEDGE_PROMPTS="anna's \\ data/prompts.jsonl" begin rloo rloo.sh "$here/../../configs/tiny/rloo.yaml" '~reward.sources' trainer.rloo.max_steps=2 \
  model.rloo.num_rollout_samples=4 model.data.add_bos=false "${common[@]}" "${for_reward[@]}"
begin ppo ppo.sh "${for_ppo[@]}" "${for_critic[@]}"
KEDGE_PROMPTS='' begin separate ppo_separate.sh "${online[-1]}" "${for_ppo[@]}" "${for_critic[@]}" "${for_reward[@]}"
for name in reinforce rs grpo rloo ppo separate; do
  ends_with $name 0
  [ -f $name/actor/model/model.safetensors ] || fail "$name leaves no model"
done
cmp ppo/actor/model/model.safetensors separate/actor/model/model.safetensors || fail 'a reward server beside the critic teaches something else'
[ "$(stat -c %a reinforce/token)" = 600 ] || fail "the token has mode $(stat -c %a reinforce/token)"
grep -qF "$(cat reinforce/token)" reinforce.log && fail 'the token is in the log'

# Servers of two ranks. (mpirun passes SIGUSR1 on, by which they end.)
if command -v mpirun >/dev/null; then
  KEDGE_SERVER_RANKS=2 begin ranked ppo_separate.sh "${for_ppo[@]}" "${for_critic[@]}" model.sharding=all "${for_reward[@]}"
  ends_with ranked 0
  [ -f ranked/actor/model/model.safetensors ] || fail 'with servers of two ranks it leaves no model'
  for name in critic reward; do grep -qE '(on|of) 2 ranks' ranked/logs/$name.log || fail "the $name server did not have two ranks: $(cat ranked/logs/$name.log)"; done
fi

# A file with NeMo-Aligner's keys, which names a reward server itself
begin nemo reinforce.sh "$here/../../configs/reference/gpt_reinforce_actor.yaml" trainer.devices=1 trainer.num_nodes=1 trainer.precision=32 "${for_reinforce[@]}" trainer.reinforce.max_epochs=1 "${for_reward[@]}"
ends_with nemo 0
[ -f nemo/actor/model/model.safetensors ] || fail "a run from NeMo-Aligner's file leaves no model"

# A server that cannot start ends the run at once, with what it said; an actor that fails gives its exit code
KEDGE_REWARD_MODEL=nowhere begin unserved reinforce.sh "${long[@]}"
begin wrong rs.sh model.rs.no_such_key=1 "${for_reward[@]}"
# A port on which somebody else answers is passed over
port=$(sed -nE 's/.*ready at 127.0.0.1:([0-9]+)$/\1/p' rs.log)
python3 -m http.server --bind 127.0.0.1 "$port" >stranger.log 2>&1 &
stranger=$!
until (: <>/dev/tcp/127.0.0.1/"$port") 2>/dev/null; do sleep 0.1; done
rm -r rs
begin rs rs.sh "${for_rs[@]}" "${for_reward[@]}"
# A critic that is killed is started again, and the run ends as the one that was left alone
begin widowed ppo.sh "${for_ppo[@]}" "${for_critic[@]}"
wait_for_steps widowed 5
kill -9 "$(pid_of widowed critic)"
# A server that dies again and again is given up, and the actor with it
KEDGE_RESTARTS=0 begin lonely reinforce.sh "${long[@]}"
wait_for_steps lonely 3
kill -9 "$(pid_of lonely reward)"
ends_with unserved 2
grep -q 'the reward server ended with 2 before it was ready; the end of .*/unserved/logs/reward.log:' unserved.log || fail "it does not name the log: $(cat unserved.log)"
grep -q 'rm_model_file: .*nowhere' unserved.log || fail "the server's own words are missing: $(cat unserved.log)"
ends_with wrong 2
grep -q 'no_such_key' wrong.log || fail "it does not say what is wrong: $(cat wrong.log)"
ends_with rs 0
grep -q "ready at 127.0.0.1:$((port + 2))$" rs.log || fail "it does not take the next free port: $(cat rs.log)"
kill $stranger
ends_with widowed 0
grep -q 'the critic server died with 137; in 1 s it is started again, 1 of 5 times' widowed.log || fail "it does not say that the critic died: $(cat widowed.log)"
same_launched ppo widowed
same_critics ppo/critic widowed/critic
ends_with lonely 137
grep -q 'the reward server died with 137, for the 1. time, and is not started again (KEDGE_RESTARTS=0)' lonely.log || fail "it does not say why it ends: $(cat lonely.log)"

# A signal that comes when a server is just ready ends the script before there is an actor
cat >ready <<'PYTHON'
#!/usr/bin/env python3
import http.server, os, signal, sys
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        os.kill(os.getppid(), signal.SIGTERM)
        self.send_response(200)
        self.end_headers()
if sys.argv[1] != "serve":
    sys.exit("an actor was started")
signal.signal(signal.SIGINT, signal.SIG_DFL)  # by which the script stops its servers
port = next(word.partition("=")[2] for word in sys.argv if word.startswith("inference.port="))
http.server.HTTPServer(("127.0.0.1", int(port)), Ready).serve_forever()
PYTHON
chmod +x ready
KEDGE=./ready begin hasty reinforce.sh
ends_with hasty 143

# Signals go to the actor, once: it saves, also when nobody reads its log any more, and the same command goes on from there. Nothing outlives
# a launcher that is killed
mkfifo unread
begin orphaned reinforce.sh "${long[@]}"
for signal in TERM:143 INT:130 USR1:138 HUP:129; do
  cat unread >stopped.log &
  reader=$!
  output=unread begin stopped reinforce.sh "${long[@]}"
  wait_for_steps stopped $(($(steps_done stopped/actor) + 3))
  kill $reader # as Ctrl-C ends the tee behind a script
  wait $reader 2>/dev/null
  kill -s "${signal%:*}" "${process_of[stopped]}"
  if [ $signal = TERM:143 ]; then
    wait_for_steps orphaned 3
    kill -9 "${process_of[orphaned]}"
  fi
  ends_with stopped "${signal#*:}"
  grep -q "SIG${signal%:*} received: the run ends after step" stopped/actor/log.txt || fail "SIG${signal%:*} does not end it after a step: $(cat stopped/actor/log.txt)"
done
begin stopped reinforce.sh "${long[@]}"
ends_with stopped 0
grep -q 'resumed from' stopped.log || fail "it does not go on: $(cat stopped.log)"
same_launched reinforce stopped
[ -f orphaned/actor/model/model.safetensors ] && fail 'the orphaned run was over before its launcher was killed'
check_ended orphaned
grep -q 'SIGTERM received' orphaned.log || fail "it was not asked to end: $(cat orphaned.log)"
exit $((failures > 0))
