# Sourced by the tests in which one call of the system fails (fault_*_test.sh KEDGE SHIM STRIDE), after the others. Each fault is tried alone, and then the
# job is started once more, without one: it ends as the job that was left alone. A test gives
#   fresh, half       a job's folders before its start, and in the middle, where it is resumed
#   faulty            one start with the fault of $fault_call, $fault_n and $fault_errno (see with_fault); sets $code, and writes its words to out.txt
#   again             another without: 0 where it ended well; its words go to again.txt
#   same WHAT         compares with the job that was left alone
shim=$(realpath "$2") stride=$3 offset=${KEDGE_FAULT_OFFSET:-$(($3 / 2))}
here_is=$PWD
steps=4
declare -A numbers=([EPERM]=1 [EIO]=5 [EMFILE]=24 [ENOSPC]=28 [ENOLCK]=37 [ECONNREFUSED]=111 [ETIMEDOUT]=110)
disk_faults=(open:EIO read:EIO pread:EIO write:ENOSPC fsync:EIO ftruncate:EIO mkdir:ENOSPC link:EPERM link:ENOSPC rename:EIO unlink:EIO flock:ENOLCK)
fault_call=all fault_n=0 fault_errno=EIO
declare -A places=() tries=()

# with_fault FOLDER COMMAND...: what fails is on files of the folder; all such calls are told in calls.txt. Becomes the command.
with_fault() {
  local below=$1
  shift
  rm -f "$here_is/calls.txt"
  KEDGE_FAULT_FOLDER=$here_is/$below KEDGE_FAULT_CALL=$fault_call KEDGE_FAULT_N=$fault_n KEDGE_FAULT_ERRNO=${numbers[$fault_errno]} \
    KEDGE_FAULT_REPORT=$here_is/calls.txt LD_PRELOAD=$shim exec "$@"
}

# names_a_file LOG: the last lines of a job that ended by the world's failure say where. (A server is named where it is what failed.)
names_a_file() { grep -qE '(run|critic)/[^ ]+|localhost:[0-9]+' <(tail -n 3 "$1"); }

# tried BEGIN: what the fault does that is set.
tried() {
  local what="$1: $fault_errno of $fault_call $fault_n" file
  "$1"
  faulty
  file=$(sed -n 's/^FAILED [a-z]* //p' calls.txt)
  # Threads share the calls: the last one may not come in every start.
  [ -n "$file" ] || { missed=$((missed + 1)); return; }
  what+=" on ${file#"$PWD"/}"
  grep -q 'a bug in kedge' out.txt && fail "$what: $(tail -n 3 out.txt)"
  # What is tried again, or can be done without, ends well; all else is the world's failure and names a file.
  if [ "$code" != 0 ]; then
    [ "$code" = 1 ] || fail "$what: exit $code: $(tail -n 3 out.txt)"
    names_a_file out.txt || fail "$what: no file is named: $(tail -n 3 out.txt)"
  fi
  again || { fail "$what: then $(tail -n 3 again.txt)"; return; }
  same "$what"
}

# sweep BEGIN FAULT...: every stride-th place of all of them
turn=0 num_tried=0 missed=0
sweep() {
  local begin=$1 fault count
  shift
  fault_call=all fault_n=0
  $begin
  faulty
  [ "$code" = 0 ] || fail "$begin without a fault: $(tail -n 5 out.txt)"
  cp calls.txt all_calls.txt
  for fault in "$@"; do
    fault_call=${fault%:*} fault_errno=${fault#*:}
    count=$(grep -c "^$fault_call " all_calls.txt)
    places[$fault]=$((${places[$fault]:-0} + count))
    for ((fault_n = 1; fault_n <= count; ++fault_n)); do
      ((turn++ % stride == offset)) || continue
      tried "$begin"
      tries[$fault]=$((${tries[$fault]:-0} + 1)) num_tried=$((num_tried + 1))
    done
  done
}

# swept LEAST FAULT...: tells what was tried. A test that does not reach LEAST places, or none of a kind, says nothing. How many there are depends on the step at
# which the resumed job was stopped; LEAST leaves room for that.
swept() {
  local least=$1 fault
  shift
  for fault in "$@"; do
    echo "$fault: ${places[$fault]:-0} places, ${tries[$fault]:-0} tried"
    [ "${places[$fault]:-0}" -ge 1 ] || fail "no place for $fault was reached"
  done
  echo "$turn places, $num_tried tried, $missed of them not reached"
  [ $turn -ge "$least" ] || fail "only $turn places, not $least"
  [ $num_tried -ge $((turn / stride)) ] || fail "only $num_tried of $turn places were tried"
  [ $missed -le $((num_tried / 20 + 1)) ] || fail "$missed of $num_tried faults did not come to pass"
}

# The newest checkpoint of a run by its step: one that could not be removed may be left beside it.
at_end() { echo "$1"/checkpoints/*-step=$steps-*-last; }
same_models() { # folder, other, what
  cmp "$1/model/model.safetensors" "$2/model/model.safetensors" || fail "$3: another model"
  cmp "$(at_end "$1")/state/state.safetensors" "$(at_end "$2")/state/state.safetensors" || fail "$3: another state"
}
# A line that could not be written is reported and missing.
same_numbers() { # folder, other, what, log...
  local one=$1 other=$2 what=$3
  shift 3
  grep -q 'metrics.jsonl' "$@" || diff <(numbers_of "$one") <(numbers_of "$other") >/dev/null || fail "$what: other numbers: $(diff <(numbers_of "$one") <(numbers_of "$other") | head -n 4)"
}
same_rollouts() { # folder, other, what, log...
  local one=$1 other=$2 what=$3
  shift 3
  grep -qE 'are not recorded' "$@" || diff -rq -x '.*.tmp' "$one/rollouts" "$other/rollouts" || fail "$what: other rollouts"
}

# What a test of one process is made of, whose command is $job; it writes to the folder `run`.
fresh() { rm -rf run && mkdir run; }
prepare_half() { rm -rf run; }
half() { rm -rf run && cp -a half run; }
faulty() {
  (with_fault run "${job[@]}") >out.txt 2>&1
  code=$?
}
again() { "${job[@]}" >again.txt 2>&1; }

is_saving() { [ -d run/checkpoints ]; }
# stopped_in_the_middle LOG COMMAND...: a job that saved something and was then asked to end, in the folder `run`.
stopped_in_the_middle() {
  local log=$1 pid status
  shift
  for _ in 1 2 3 4 5; do # where the signal comes too late, once more
    prepare_half
    "$@" >"$log" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! is_saving; do sleep 0.002; done
    kill -TERM $pid 2>/dev/null
    wait $pid
    status=$?
    [ $status = 143 ] && break
  done
  [ $status = 143 ] || fail "the run that is to be resumed ended: $(cat "$log")"
}
