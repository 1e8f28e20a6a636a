# Sourced by power_cut_*_test.sh KEDGE SHIM STRIDE, after the others: the power fails at a point of a job, and what was not synced is lost, in each of the
# ways that tests/support/power_cut.py knows. Then the job is started again: it ends as the one that was left alone, from the newest checkpoint that it
# had published. Folders are below `disk`. A test gives `again` and `same WHAT` as fault_support.sh says.
shim=$(realpath "$2") stride=$3 offset=${KEDGE_FAULT_OFFSET:-$(($3 / 2))}
cutter=$here/../support/power_cut.py
steps=4
turn=0 num_tried=0
declare -A places=() tries=()

# The newest: a cut between the name of a new one and the removal of the old leaves both until the next save.
last_of() { ls -d "$1"/checkpoints/*-last | sort -V | tail -n 1; }
# logged COMMAND...: becomes the command; what it does to the disk goes to disk.log.
logged() {
  KEDGE_DISK_FOLDER=$here_is/disk KEDGE_DISK_LOG=$here_is/disk.log LD_PRELOAD=$shim exec "$@"
}
here_is=$PWD

# cut_everywhere WHAT: every stride-th point of disk.log, whose folder stood as in disk.before.
cut_everywhere() {
  local point variant kept kind call path what resumed
  python3 "$cutter" points disk.log disk disk.before >points.txt || fail "$1: the log cannot be read"
  while read -r point variant kept kind call path <&3; do
    places[$kind]=$((${places[$kind]:-0} + 1))
    ((turn++ % stride == offset)) || continue
    tries[$kind]=$((${tries[$kind]:-0} + 1)) num_tried=$((num_tried + 1))
    what="$1: power cut, $variant, after call $point ($call $path)"
    rm -rf disk
    python3 "$cutter" build disk.log disk disk.before "$point" "$variant" disk || fail "$what: cannot be built"
    again || { fail "$what: then $(tail -n 3 again.txt)"; continue; }
    resumed=$(sed -nE 's/.*resumed from .* at step ([0-9]+).*/\1/p' again.txt)
    [ "${resumed:-0}" -ge "$kept" ] || fail "$what: the checkpoint of step $kept was published, and the run is resumed at step ${resumed:-0}"
    same "$what"
  done 3<points.txt
}

# counted LEAST KIND...: what was tried; LEAST points at least, and some of every kind.
counted() {
  local least=$1 kind
  shift
  for kind in "$@"; do
    echo "$kind: ${places[$kind]:-0} points, ${tries[$kind]:-0} tried"
    [ "${places[$kind]:-0}" -ge 1 ] || fail "no point of a $kind was reached"
  done
  echo "$turn points, $num_tried tried"
  [ $turn -ge "$least" ] && [ $num_tried -ge $((turn / stride)) ] || fail "only $num_tried of $turn points were tried"
}
