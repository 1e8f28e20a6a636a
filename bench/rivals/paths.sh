# What the drivers beside TRL have in common: where things are. To be read with `source` from the repository's root.
kedge=$PWD/build/release/bin/kedge
[ -x "$kedge" ] || kedge=$PWD/build/ci/bin/kedge
packages=$(cat tests/requirements.txt bench/rivals/requirements.txt | sha256sum | cut -c1-12)
python=${KEDGE_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/kedge}/rivals-$packages/bin/python
stories=${KEDGE_ASSETS:-../shared/assets}/models/tinystories-656k
[ -x "$python" ] || { echo "no Python packages to compare with; run scripts/setup --rivals" >&2; exit 2; }
[ -e "$stories" ] || { echo "$stories: not there; KEDGE_ASSETS names the folder with models and data" >&2; exit 2; }

work=${KEDGE_BENCH_DIR:-}  # a folder to keep all results in
if [ -z "$work" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"

quietly() {  # runs a command; its output is shown only where it fails
  local log=$work/log.txt
  "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
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
