# Sourced by the tests of commands on several ranks, which are called with KEDGE MPIRUN...: what every test of training has, `mpirun`, and whether two
# runs are close.
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
mpirun=("${@:2}")
. "$here/train_support.sh"
losses() { grep -oE '"(train|validation|train_optim)/loss": [^,]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
close() { # folder, other, losses wanted: within 1e-5 of each other, unless relative=0 relative to the first where it is above 1
  paste <(losses "$1") <(losses "$2") | awk -v a="$1" -v b="$2" -v wanted="$3" -v relative="${relative:-1}" '
    { d = $1 - $2; if (d < 0) d = -d; size = $1 < 0 ? -$1 : $1; if (relative && size > 1) d /= size; if (d > most) most = d }
    END { printf "%s and %s: %d numbers, largest difference %g\n", a, b, NR, most; exit !(NR == wanted && most < 1e-5) }' || fail "$1 and $2 differ"
}
