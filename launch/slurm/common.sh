# shellcheck shell=bash
# Sourced by the sbatch scripts: finds the components of a job, starts programs in them, and requeues the job.
# Components have the numbers of Slurm's heterogeneous job groups; '' means the whole job if it has one component.
# shellcheck source=launch/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

: "${KEDGE_MPI:=pmix}"            # value of srun --mpi; srun --mpi=list shows the choices
: "${KEDGE_MAX_REQUEUES:=100}"    # how often a job may requeue itself
before_server=() before_actor=()
# srun forwards SIGUSR1 to its tasks and kills them at once on SIGTERM and SIGINT.
stop_signal=USR1 actor_signal=USR1
container=()
if [ -n "${KEDGE_CONTAINER:-}" ]; then
  container=(--container-image="$KEDGE_CONTAINER" --no-container-mount-home)
  [ -z "${KEDGE_MOUNTS:-}" ] || container+=(--container-mounts="$KEDGE_MOUNTS")
fi

prepare_job() {
  [ -n "${SLURM_JOB_ID:-}" ] || refuse "this is not a Slurm job; run sbatch $0"
  prepare_run
  log_suffix=-${SLURM_JOB_ID}_0
  actor_log=$KEDGE_RUN/logs/actor$log_suffix.log
  [ "${SLURM_RESTART_COUNT:-0}" = 0 ] || say "job $SLURM_JOB_ID was queued again, for the $SLURM_RESTART_COUNT. time: all components resume from what they saved"
}

of_component() { # VARIABLE COMPONENT: the value of Slurm's variable for it
  local name="SLURM_$1${2:+_HET_GROUP_$2}"
  echo "${!name:-}"
}
# node_address COMPONENT: the address of its first node, as Slurm knows it.
node_address() {
  local node
  node=$(scontrol show hostnames "$(of_component JOB_NODELIST "$1")" | head -n 1)
  scontrol -o show node "$node" | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p'
}
# step_in COMPONENT [NODES TASKS_A_NODE]: sets $step, the command that starts a program there: one process, or NODES * TASKS_A_NODE.
step_in() {
  local nodes=${2:-1} tasks=${3:-1} cpus
  cpus=$(of_component CPUS_PER_TASK "$1")
  step=(srun ${1:+--het-group="$1"} --nodes="$nodes" --ntasks=$((nodes * tasks)) --ntasks-per-node="$tasks" --overlap
    ${cpus:+--cpus-per-task="$cpus" --export="ALL,OMP_NUM_THREADS=$cpus"} "${container[@]}")
}
# all_tasks_in COMPONENT: sets $step, the command that starts a program on all tasks of a component, and $ranks, the keys with their number.
all_tasks_in() {
  local nodes tasks
  nodes=$(of_component JOB_NUM_NODES "$1")
  tasks=$(of_component TASKS_PER_NODE "$1")  # 8(x2)
  tasks=${tasks%%[(,]*}
  step_in "$1" "$nodes" "$tasks"
  # shellcheck disable=SC2034  # read by the scripts
  ranks=(trainer.num_nodes="$nodes" trainer.devices="$tasks")
}
# server_in COMPONENT: for a server, which is one process if the component has one task.
server_in() {
  all_tasks_in "$1"
  [ "${ranks[*]}" = 'trainer.num_nodes=1 trainer.devices=1' ] || step+=(--mpi="$KEDGE_MPI" --kill-on-bad-exit=1)
}
# ranks_in COMPONENT: for the actor.
ranks_in() {
  all_tasks_in "$1"
  step+=(--mpi="$KEDGE_MPI" --kill-on-bad-exit=1 --output="$KEDGE_RUN/logs/actor-${SLURM_JOB_ID}_%t.log" --open-mode=append)
}

# Slurm sends SIGTERM to every process of a job. It is not forwarded: a second one would end the actor without a save.
told() { # SIGNAL
  signalled=$1
  if [ "$1" = TERM ]; then
    say 'SIGTERM received by the complete job: the actor finishes its step and saves, if Slurm leaves it the time'
    mends=''
  else
    say "SIG$1 received${actor:+; the actor finishes its step and saves}"
    ! is_alive "$actor" || ask_actor USR1
  fi
}

# After run_actor: requeues the job if SIGUSR1 ended the run early (#SBATCH --signal, some minutes before the time limit).
requeue_if_told() {
  [ "$signalled" = USR1 ] && [ "$status" = 138 ] || return 0
  stop_all
  trap '' TERM  # Slurm now sends it, also to scontrol
  if [ "${SLURM_RESTART_COUNT:-0}" -ge "$KEDGE_MAX_REQUEUES" ]; then
    say "not queued again: that was done $SLURM_RESTART_COUNT times (KEDGE_MAX_REQUEUES)"
  elif scontrol requeue "$SLURM_JOB_ID"; then
    say "job $SLURM_JOB_ID is queued again"
  else
    say "job $SLURM_JOB_ID cannot be queued again; the same sbatch command resumes from what was saved"
  fi
}
