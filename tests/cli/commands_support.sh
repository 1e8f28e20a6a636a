# Sourced by the tests of commands: $kedge from the first argument, a folder of its own that goes away at the end, `expect`, and a tokenizer.
kedge=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
# expect EXIT_CODE PATTERN COMMAND...: both streams together must match the pattern (grep -E).
expect() {
  local code=$1 pattern=$2 out status
  shift 2
  out=$("$@" 2>&1)
  status=$?
  if [ "$status" != "$code" ] || ! grep -qE -- "$pattern" <<<"$out"; then
    printf 'FAILED: %s\nwanted exit %s and /%s/, found exit %s and:\n%s\n' "$*" "$code" "$pattern" "$status" "$out"
    failures=$((failures + 1))
  fi
}

# make_letters FOLDER: the files of a tokenizer of a few letters.
make_letters() {
  mkdir "$1"
  cat >"$1/tokenizer.json" <<'JSON'
{"version": "1.0", "added_tokens": [{"id": 6, "content": "<eos>", "special": true, "single_word": false, "lstrip": false, "rstrip": false,
 "normalized": false}], "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2, "c": 3, "ab": 4, "\n": 5}, "merges": ["a b"]}}
JSON
  echo '{"eos_token": "<eos>"}' >"$1/tokenizer_config.json"
}
