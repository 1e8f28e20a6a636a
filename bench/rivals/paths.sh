# What the drivers of TRL comparisons have in common: where things are. To be read with `source` from the repository's root.
kedge=$PWD/build/release/bin/kedge
[ -x "$kedge" ] || kedge=$PWD/build/ci/bin/kedge
packages=$(cat tests/requirements.txt bench/rivals/requirements.txt | sha256sum | cut -c1-12)
python=${KEDGE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/kedge}/rivals-$packages/bin/python
export PYTHONDONTWRITEBYTECODE=  # whatever the environment says: baselines start as they do the second time, with their modules compiled
stories=${KEDGE_ASSETS:-../shared/assets}/models/tinystories-656k
[ -x "$python" ] || { echo "no Python packages to compare with; run scripts/setup --rivals" >&2; exit 2; }
[ -e "$stories" ] || { echo "$stories: does not exist; KEDGE_ASSETS names the folder with models and data" >&2; exit 2; }

work=${KEDGE_BENCH_DIR:-}  # a folder to keep all results in
if [ -z "$work" ]; then
  work=$(mktemp -d)
fi
mkdir -p "$work"
server=
trap 'stop_server; [ -n "${KEDGE_BENCH_DIR:-}" ] || rm -rf "$work"' EXIT

quietly() {  # runs a command; its output is shown only where it fails
  local log=$work/log.txt
  "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}

start_server() {  # a file for its output, and the command of a kedge server at any free port; sets server and port
  local log=$1
  shift
  : >"$log"
  "$@" >>"$log" 2>&1 &
  server=$! port=
  until port=$(sed -n 's|.*ready .*http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$log") && [ -n "$port" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.2
  done
}

stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}

note() { printf '%s\n' "$2" >"$1"; }  # a file, and the line it begins with

noted() {  # a file that a command is added to, as anyone would type it: $KEDGE_ASSETS for the data, $RUNS for the runs' folders
  local file=$1 word line=
  shift
  for word in "$@"; do
    word=${word/#"$kedge"/kedge}
    word=${word/#"$python"/python}
    word=${word//"${KEDGE_ASSETS:-../shared/assets}"/\$KEDGE_ASSETS}
    word=${word//"$work"/\$RUNS}
    [[ $word =~ [][\ {}*?\;\|] ]] && word="\"$word\""
    line+="$word "
  done
  printf '%s\n' "${line% }" >>"$file"
}
