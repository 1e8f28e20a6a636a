# shellcheck shell=bash
# Sourced by the scripts in local/ and slurm/. Starts servers, waits until they are ready, restarts those that die, and stops them when the
# actor ends.
# A script calls, in this order:
#   read_arguments "reward critic" "$@"        the script's servers; arguments before --reward and --critic go to the actor
#   need VARIABLE... and need_prompts          exit 2 if one is not set
#   prepare_run                                sets up the program, the run's folder and its token
#   start_server NAME HOST PORT COMMAND...     for each server
#   run_actor COMMAND...                       waits for the servers, runs the actor to its end; sets $status
#   exit "$status"
# Requires bash 4.4, coreutils and util-linux, and under Slurm its commands.

set -uo pipefail
home=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
: "${KEDGE_RESTARTS:=5}"        # server restarts allowed; the count starts again after ten minutes without a failure
: "${KEDGE_READY_LIMIT:=3600}"  # seconds until a server must be ready
servers=() actor='' signalled='' broken='' mends=yes status=0
declare -A server_command=() server_pid=() server_log=() server_host=() server_port=() server_deaths=() server_begun=() server_due=()
# How components are started and stopped; slurm/common.sh overrides this. Each component has its own session, so that Ctrl-C reaches it only
# once, through this script, and it does not outlive the script.
before_server=(setsid) before_actor=(setsid) stop_signal=INT
if setpriv --pdeathsig TERM true 2>/dev/null; then before_server+=(setpriv --pdeathsig TERM) before_actor+=(setpriv --pdeathsig TERM); fi
if [ -n "${KEDGE_SERVER_GPUS:-}" ]; then before_server+=(env CUDA_VISIBLE_DEVICES="$KEDGE_SERVER_GPUS"); fi
if [ -n "${KEDGE_ACTOR_GPUS:-}" ]; then before_actor+=(env CUDA_VISIBLE_DEVICES="$KEDGE_ACTOR_GPUS"); fi
# mpirun forwards SIGUSR1 to its ranks and kills them at once on any other signal.
if [ -n "${KEDGE_SERVER_RANKS:-}" ]; then before_server+=(mpirun -n "$KEDGE_SERVER_RANKS" --bind-to none) stop_signal=USR1; fi
if [ -n "${KEDGE_RANKS:-}" ]; then before_actor+=(mpirun -n "$KEDGE_RANKS" --bind-to none) actor_signal=USR1; fi

say() { printf '%(%H:%M:%S)T launch: %s\n' -1 "$*" >&2; }
usage() { awk 'NR > 1 { if (!/^#( |$)/) exit; sub(/^# ?/, ""); print }' "$0"; }
refuse() {
  say "$*"
  exit 2
}
is_alive() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null; }

# read_arguments SERVERS ARGUMENT...: sets actor_arguments, and for each server NAME_arguments.
read_arguments() {
  local section=actor word
  known=$1
  shift
  # shellcheck disable=SC2034  # read by the scripts
  actor_arguments=() reward_arguments=() critic_arguments=()
  for word in "$@"; do
    case $word in
      -h | --help) usage && exit 0 ;;
      --reward | --critic)
        section=${word#--}
        [[ " $known " == *" $section "* ]] || refuse "$word: this script starts no such server${known:+; it has: $known}"
        ;;
      *) eval "${section}_arguments+=(\"\$word\")" ;;
    esac
  done
}

need() {
  local name missing=''
  for name in "$@"; do [ -n "${!name:-}" ] || missing+=" $name"; done
  [ -z "$missing" ] || refuse "not set:$missing; --help says what they are"
}

# in_quotes TEXT: as a list in a key's value has it; there a backslash precedes quotes and backslashes.
in_quotes() {
  local quote="'" text=${1//\\/\\\\}
  printf '%s' "'${text//$quote/\\$quote}'"
}
# data_prefix TRAIN VALIDATION: the key that names these files.
data_prefix() { printf '%s' "model.data.data_prefix={train: [$(in_quotes "$1")], validation: [$(in_quotes "$2")], test: [$(in_quotes "$2")]}"; }

# Sets $prompts, the key for KEDGE_PROMPTS and KEDGE_VAL_PROMPTS; empty if the actor's arguments contain the key.
need_prompts() {
  prompts=()
  [[ " ${actor_arguments[*]}" != *' model.data.data_prefix='* ]] || return 0
  need KEDGE_PROMPTS
  # shellcheck disable=SC2034  # read by the scripts
  prompts=("$(data_prefix "$KEDGE_PROMPTS" "${KEDGE_VAL_PROMPTS:-$KEDGE_PROMPTS}")")
}

# Sets $KEDGE, $KEDGE_RUN as an absolute path, and $token_file.
prepare_run() {
  if [ -z "${KEDGE:-}" ] && [ -x "$home/build/release/bin/kedge" ]; then KEDGE=$home/build/release/bin/kedge; fi
  if [ -z "${KEDGE:-}${KEDGE_CONTAINER:-}" ] && [ ! -e "$home/CMakeLists.txt" ] && [ -x "$home/../../bin/kedge" ]; then KEDGE=$(realpath "$home/../../bin/kedge"); fi  # installed
  KEDGE=${KEDGE:-kedge}
  [ -n "${KEDGE_CONTAINER:-}" ] || command -v "$KEDGE" >/dev/null || refuse "KEDGE: no program $KEDGE; scripts/build makes one, KEDGE=FILE names one that is elsewhere"
  mkdir -p "$KEDGE_RUN/logs" || refuse "KEDGE_RUN: the folder $KEDGE_RUN cannot be made"
  KEDGE_RUN=$(realpath "$KEDGE_RUN")
  # Servers and actor read it. It is kept with the run, so that a restart uses the same token.
  token_file=$KEDGE_RUN/token
  if [ -n "$known" ] && [ ! -s "$token_file" ]; then rm -f "$token_file" && (umask 077 && set -o noclobber && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$token_file"); fi
  # With KEDGE_LOG=warn only the actor writes to the screen; messages of this script and of the shell go to the log.
  exec 3>&2
  if [ "${KEDGE_LOG:-}" = warn ]; then exec 2>>"$KEDGE_RUN/logs/launch.log"; fi
  trap '' PIPE  # Ctrl-C also ends the tee that reads this; children ignore the signal too
  trap 'told USR1' USR1
  trap 'told TERM' TERM
  trap 'told INT' INT
  trap 'told HUP' HUP
  trap stop_all EXIT
}

# free_port HOST NUMBER: derives the port of server NUMBER from the run's folder, so that a restarted run has the same one; a port that
# already answers is skipped. The ports are below the system's ephemeral range.
free_port() {
  local port=$((${KEDGE_PORT:-$((20000 + $(cksum <<<"$KEDGE_RUN" | cut -d ' ' -f 1) % 10000))} + $2))
  # shellcheck disable=SC2016  # for the inner shell
  while timeout 5 bash -c ': <>"/dev/tcp/$0/$1"' "$1" "$port" 2>/dev/null; do port=$((port + 2)); done
  echo "$port"
}

# is_others_port HOST PORT: does another user of this machine listen there? Then the token is not sent. (Root may: it forwards for containers.)
is_others_port() {
  case $1 in 127.*|localhost|"${HOSTNAME:-}") ;; *) return 1 ;; esac
  awk -v port="$(printf ':%04X' "$2")" -v me="$(id -u)" \
    '$4 == "0A" && substr($2, length($2) - 4) == port && $8 != me && $8 != 0 { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# is_ready NAME: asks the server's health endpoint; another server at this address would not accept the token.
is_ready() {
  ! is_others_port "${server_host[$1]}" "${server_port[$1]}" || return 1
  # shellcheck disable=SC2016  # for the inner shell; the token is never on a command line
  timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" &&
    printf "GET /v2/health/ready HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" "$0" "$(<"$2")" >&3 &&
    read -r line <&3 && [[ $line == *" 200 "* ]]' "${server_host[$1]}" "${server_port[$1]}" "$token_file" 2>/dev/null
}

start_server() { # NAME HOST PORT COMMAND...
  servers+=("$1")
  server_host[$1]=$2 server_port[$1]=$3 server_deaths[$1]=0 server_log[$1]=$KEDGE_RUN/logs/$1${log_suffix:-}.log
  server_command[$1]=$(printf '%q ' "${@:4}")
  say "$1 server: ${server_command[$1]}"
  begin_server "$1"
}
begin_server() {
  local -a words=()
  eval "words=(${server_command[$1]})"
  "${before_server[@]}" "${words[@]}" >>"${server_log[$1]}" 2>&1 </dev/null &
  server_pid[$1]=$! server_begun[$1]=$SECONDS
}

# give_up NAME CODE TEXT: the server did not start, or is not restarted.
give_up() {
  broken=$1 mends='' status=$(($2 == 0 ? 1 : $2))
  say "the $1 server $3; the end of ${server_log[$1]}:" 2>&3
  tail -n 20 "${server_log[$1]}" >&3
  is_alive "$actor" || return 0
  say 'the actor is asked to stop; its last checkpoint is kept'
  ask_actor USR1
}

wait_ready() { # NAME: returns false and sets $status if the server does not become ready
  local code
  until is_ready "$1"; do
    if ! is_alive "${server_pid[$1]}"; then
      wait "${server_pid[$1]}"
      code=$?
      give_up "$1" $code "ended with $code before it was ready"
    elif [ $((SECONDS - server_begun[$1])) -ge "$KEDGE_READY_LIMIT" ]; then
      give_up "$1" 1 "was not ready within $KEDGE_READY_LIMIT s (KEDGE_READY_LIMIT)"
    elif [ -n "$signalled" ]; then
      status=$((128 + $(kill -l "$signalled")))
    fi
    [ $status = 0 ] || return 1
    sleep 0.2
  done
  say "the $1 server is ready at ${server_host[$1]}:${server_port[$1]}"
}

# Restarts a dead server after a growing pause, unless it died too often or reported invalid input (exit code 2).
mend_server() { # NAME
  local code pause
  if is_alive "${server_pid[$1]}"; then
    return
  elif [ -n "${server_pid[$1]}" ]; then
    wait "${server_pid[$1]}"
    code=$?
    server_pid[$1]=''
    [ $((SECONDS - server_begun[$1])) -lt 600 ] || server_deaths[$1]=0
    server_deaths[$1]=$((server_deaths[$1] + 1))
    if [ $code = 2 ] || [ "${server_deaths[$1]}" -gt "$KEDGE_RESTARTS" ]; then
      give_up "$1" $code "died with $code, for the ${server_deaths[$1]}. time, and is not started again (KEDGE_RESTARTS=$KEDGE_RESTARTS)"
      return
    fi
    pause=$((server_deaths[$1] > 6 ? 60 : 2 ** (server_deaths[$1] - 1)))
    server_due[$1]=$((SECONDS + pause))
    say "the $1 server died with $code; in $pause s it is started again, ${server_deaths[$1]} of $KEDGE_RESTARTS times; the actor waits for it"
  elif [ $SECONDS -ge "${server_due[$1]}" ]; then
    begin_server "$1"
  fi
}

ask_actor() { kill -s "${actor_signal:-$1}" "$actor"; }
told() { # SIGNAL
  signalled=$1
  say "SIG$1 received${actor:+; the actor finishes its step and saves}"
  ! is_alive "$actor" || ask_actor "$1"
}

run_actor() { # COMMAND...
  local name code
  for name in "${servers[@]}"; do wait_ready "$name" || return; done
  if [ -n "$signalled" ]; then  # just as the last one was ready
    status=$((128 + $(kill -l "$signalled")))
    return
  fi
  say "actor: $(printf '%q ' "$@")"
  "${before_actor[@]}" "$@" </dev/null 2>&3 &
  actor=$!
  while is_alive "$actor"; do
    for name in "${servers[@]}"; do [ -z "$mends" ] || mend_server "$name"; done
    sleep 0.2
  done
  wait "$actor"
  code=$?
  actor=''
  say "the actor ended with $code"
  if [ $code != 0 ] && [ -s "${actor_log:-}" ]; then
    say "the end of $actor_log:"
    tail -n 20 "$actor_log" >&2
  fi
  [ -n "$broken" ] || status=$code
}

all_ended() { # SECONDS: have all servers ended within this time?
  local name end=$((SECONDS + $1))
  for name in "${servers[@]}"; do
    while is_alive "${server_pid[$name]}"; do
      [ $SECONDS -lt $end ] || return 1
      sleep 0.1
    done
  done
}
stop_all() {
  local name signal
  ! is_alive "$actor" || ask_actor TERM
  for signal in "$stop_signal" TERM KILL; do
    for name in "${servers[@]}"; do ! is_alive "${server_pid[$name]}" || kill -s "$signal" "${server_pid[$name]}"; done
    ! all_ended 20 || break
  done
  [ ${#servers[@]} = 0 ] || say 'all servers have ended'
  servers=()
}
