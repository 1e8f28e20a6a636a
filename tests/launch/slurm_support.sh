# shellcheck shell=bash
# Sourced by slurm_test.sh: a Slurm of our own, with its own munge, three nodes that are all this machine, free ports, and all files in $cluster.
cluster=$folder/slurm
daemons=()
declare -A job_of=()

skip() {
  echo "skipped: $1"
  exit 77
}
start_daemon() { # NAME COMMAND...
  setpriv --pdeathsig TERM "${@:2}" >"$cluster/$1.out" 2>&1 &
  daemons+=($!)
}
start_cluster() {
  local ports host user
  for program in munged slurmctld slurmd sbatch srun scontrol; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "no $program: Debian packages slurm-wlm and munge, which scripts/setup --tests installs"
  done
  PATH=$PATH:/usr/sbin
  mkdir -p "$cluster/run" "$cluster/state/"{n0,n1,n2}
  chmod 711 "$folder" "$cluster" "$cluster/run"  # munge wants its socket in reach of all
  (umask 077 && head -c 1024 /dev/urandom >"$cluster/munge.key")
  start_daemon munged munged --foreground --force --socket="$cluster/run/munge" --key-file="$cluster/munge.key" --pid-file="$cluster/run/munged.pid" \
    --log-file="$cluster/munged.log" --seed-file="$cluster/munge.seed"
  host=$(hostname -s) user=$(id -un)
  ports=$(python3 - <<'PY'
import random, socket
while True:
    first = random.randrange(10000, 19000)
    sockets = [socket.socket() for _ in range(4)]
    try:
        for i, one in enumerate(sockets):
            one.bind(("127.0.0.1", first + i))
    except OSError:
        continue
    print(first)
    break
PY
)
  # Credentials are not signed: slurmd 22.05 shares one munge context between its threads for them, and sometimes crashes (double free).
  # Jobs of several components are started by the backfill scheduler alone: every second, not every half minute. A step's tasks are found by their
  # parents, because cgroups want more rights than a container has.
  cat >"$cluster/slurm.conf" <<CONF
ClusterName=kedge
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ports
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$cluster/run/munge
CredType=cred/none
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/state/%n
TmpFS=$cluster/state/%n
SlurmctldPidFile=$cluster/run/slurmctld.pid
SlurmdPidFile=$cluster/run/%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1,bf_resolution=1,bf_hetjob_immediate
SwitchType=switch/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=10
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n[0-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((ports + 1))-$((ports + 3))] CPUs=8 State=UNKNOWN
PartitionName=main Nodes=n[0-2] Default=YES State=UP MaxTime=INFINITE
CONF
  export SLURM_CONF=$cluster/slurm.conf
  for _ in $(seq 100); do
    [ -S "$cluster/run/munge" ] && break
    sleep 0.1
  done
  start_daemon slurmctld slurmctld -D
  for node in n0 n1 n2; do start_daemon $node slurmd -D -N $node; done
  local end=$((SECONDS + 30))
  while [ $SECONDS -lt $end ] && kill -0 "${daemons[1]}" 2>/dev/null; do
    [ "$(timeout 5 sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 3 ] && return
    sleep 0.2
  done
  skip "Slurm does not start here: $(tail -n 3 "$cluster"/*.out "$cluster"/*.log)"
}
# Also where a test fails in its middle: jobs first, so that Slurm ends their processes, then the daemons.
stop_cluster() {
  if [ -n "${SLURM_CONF:-}" ]; then
    timeout 10 scancel --user="$(id -un)" 2>/dev/null
    local end=$((SECONDS + 10))
    while [ $SECONDS -lt $end ] && [ -n "$(timeout 5 squeue --noheader 2>/dev/null)" ]; do sleep 0.1; done
  fi
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null; done
  wait "${daemons[@]}" 2>/dev/null
}

# field_of RUN FIELD: of what scontrol shows of its job, the first component's.
field_of() { scontrol --oneliner show job "${job_of[$1]}" 2>/dev/null | head -n 1 | sed -nE "s/.* $2=([^ ]*).*/\\1/p"; }
# submit RUN SCRIPT ARGUMENT...: what the job says is in RUN.log.
submit() { job_of[$1]=$(KEDGE_RUN=$1 sbatch --parsable --output="$1.log" "${sbatch_options[@]}" "$scripts/$2" "${@:3}") || fail "sbatch $2"; }
wait_for_log() { # RUN PATTERN
  for _ in $(seq 600); do
    grep -qE "$2" "$1.log" 2>/dev/null && return
    sleep 0.1
  done
  fail "the job of $1 does not say /$2/: $(tail -n 30 "$1.log")"
}
wait_for_steps() { # RUN STEPS
  for _ in $(seq 600); do
    [ "$(steps_done "$1/actor")" -ge "$2" ] && return
    sleep 0.05
  done
  fail "the job of $1 does not come to step $2: $(tail -n 30 "$1.log" "$1"/logs/*)"
}
# job_ends RUN STATE CODE: it does, within some time, in this way, and leaves no process.
job_ends() {
  local state=''
  for _ in $(seq 900); do
    state=$(field_of "$1" JobState)
    case $state in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) break ;; esac
    sleep 0.1
  done
  [ "$state" = "$2" ] || fail "the job of $1 is $state, wanted $2: $(tail -n 30 "$1.log"; tail -n 25 "$cluster"/slurmctld.log "$cluster"/n?.log; ps -eo pid,stat,etimes,args | grep -E 'slurmstepd|srun' | cut -c1-160)"
  [ "$(field_of "$1" ExitCode)" = "$3:0" ] || fail "the job of $1 has the exit code $(field_of "$1" ExitCode), wanted $3: $(tail -n 30 "$1.log")"
  check_ended "$1"
}
# start_now RUN: Slurm lets a job that is queued again wait for two minutes; this one need not. But its steps have the numbers of those before: their
# daemons must have gone, and what these last reported must have arrived, or it ends the new step; nor may a node be completing the old ones.
start_now() {
  local state part parts
  for _ in $(seq 300); do
    state=$(field_of "$1" JobState)
    [ "$state" = PENDING ] && break
    sleep 0.1
  done
  [ "$state" = PENDING ] || fail "the job of $1 is $state, and not queued again"
  parts=$(scontrol --oneliner show job "${job_of[$1]}" | sed -nE 's/^JobId=([0-9]+) .*/\1/p')
  for part in $parts; do
    for _ in $(seq 600); do
      pgrep -f "^slurmstepd: \\[$part\\." >/dev/null || break
      sleep 0.1
    done
  done
  for _ in $(seq 300); do
    sinfo --noheader --format=%T | grep -qvE '^(idle|mixed|allocated)$' || break
    sleep 0.1
  done
  sleep 4
  for part in $parts; do scontrol update job="$part" StartTime=now; done
}
