#!/usr/bin/env bash
# The program as a user meets it: exit codes, help, nearest names. commands_test.sh KEDGE
set -uo pipefail
kedge=$(realpath "$1")
failures=0
# expect EXIT_CODE PATTERN ARGUMENT...: both streams together must match the pattern (grep -E).
expect() {
  local code=$1 pattern=$2 out status
  shift 2
  out=$("$kedge" "$@" 2>&1)
  status=$?
  if [ "$status" != "$code" ] || ! grep -qE -- "$pattern" <<<"$out"; then
    printf 'FAILED: kedge %s\nwanted exit %s and /%s/, found exit %s and:\n%s\n' "$*" "$code" "$pattern" "$status" "$out"
    failures=$((failures + 1))
  fi
}
expect 0 '^kedge [0-9]+\.[0-9]+\.[0-9]+ \(' --version
expect 0 '^Usage: kedge COMMAND' --help
expect 0 '^  doctor ' --help
expect 0 '^A first alignment' --help
expect 0 '^Exit codes: 0 done, 1 ' --help
expect 0 '^Documentation: ' --help
expect 2 '^Usage: kedge COMMAND'
expect 2 'unknown command "docter"; nearest: doctor; kedge --help lists all commands' docter
expect 0 '^Usage: kedge doctor' doctor --help
expect 0 '^Usage: kedge config NAME' help config
expect 0 '^CPU  ' doctor
expect 0 '^torch  +2\.11\.0' doctor
expect 0 '^CUDA  ' doctor
expect 0 '^MPI  ' doctor
expect 0 '^\{"kedge": ' doctor --json
expect 2 'unknown flag --jsn; nearest: --json' doctor --jsn
expect 0 '^KEY +TYPE +DEFAULT$' config metrics
expect 0 '^    MEANING$' config metrics
expect 0 '^create_tensorboard_logger +bool +true$' config metrics
# No line of any configuration is wider than a window, and nothing is lost by that: every key, and every word of its meaning.
for name in $("$kedge" help config | sed -n '/^Configurations/,$ s/^  \([a-z_]*\) .*/\1/p'); do
  for form in "" --yaml; do
    told=$("$kedge" config "$name" $form)
    [ "$(wc -l <<<"$told")" -gt 1 ] || { echo "FAILED: kedge config $name $form says nothing" && failures=$((failures + 1)); }
    wide=$(awk 'length($0) > 110' <<<"$told")
    [ -z "$wide" ] || { echo "FAILED: kedge config $name $form has wide lines: $wide" && failures=$((failures + 1)); }
  done
  python3 - "$name" "$kedge" <<'PY' || failures=$((failures + 1))
import json, subprocess, sys
name, kedge = sys.argv[1:]
says = lambda *form: subprocess.run([kedge, "config", name, *form], capture_output=True, text=True, check=True).stdout
table = " ".join(says().split())
for row in map(json.loads, says("--json").splitlines()):
    if "meaning" in row:
        for part in ("key", "type", "meaning"):
            assert " ".join(row[part].split()) in table, f"FAILED: kedge config {name}: not {row[part]}"
PY
done
expect 0 '^console_numbers: 4$' config metrics --yaml
expect 0 '^[{]"key": "console_numbers", "type": "integer", "default": "4", "meaning": ' config metrics --json
expect 0 '^[{]"key": "remote_rm.host", "same_as": "remote_rm.reward_model.ip"}$' config reinforce --json
expect 0 '^[{]"key": "model.reinforce.trt_llm", "no_effect": ' config reinforce --json
expect 0 '^pattern +text or null +null$' config reward_source
expect 2 'give one of them' config metrics --json --yaml
expect 2 'no configuration "metrix"; nearest: metrics' config metrix
expect 2 'which one' config
# Every command: help by both ways, an example to copy, and no line wider than a window. All lines of `kedge --help` too.
expect 0 '^kedge aligns language models' --help
help=$("$kedge" --help)
commands=$("$kedge" completion --table | awk -F '\t' '$1 == "help" { print $3 }')
[ "$(wc -w <<<"$commands")" -ge 20 ] || { echo "FAILED: commands: $commands"; failures=$((failures + 1)); }
for name in $commands; do
  text=$("$kedge" "$name" --help)
  grep -qE "^  ([^#]*[|(&] ?)?kedge $name " <<<"$text" || { echo "FAILED: kedge $name --help has no example"; failures=$((failures + 1)); }
  grep -qE "^Usage: kedge $name" <<<"$text" || { echo "FAILED: kedge $name --help has no usage"; failures=$((failures + 1)); }
  help+=$'\n'$text
done
[ "$("$kedge" help sft)" = "$("$kedge" sft --help)" ] || { echo "FAILED: kedge help sft is another text"; failures=$((failures + 1)); }
wide=$(awk 'length($0) > 110' <<<"$help")
[ -z "$wide" ] || { printf 'FAILED: lines of help wider than 110 columns:\n%s\n' "$wide"; failures=$((failures + 1)); }
# Results go to standard output, complaints to standard error.
[ -z "$("$kedge" docter 2>/dev/null)" ] || { echo "FAILED: an error on standard output"; failures=$((failures + 1)); }
[ "$failures" = 0 ] && echo "all as expected"
exit "$((failures > 0))"
