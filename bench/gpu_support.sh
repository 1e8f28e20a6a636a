# Sourced by benchmarks of complete runs on an NVIDIA GPU, from the repository's root: builds with CUDA; then $kedge, $work, inputs and models of random
# weights, a server in the background, and the card's memory as nvidia-smi sees it. $failed is what they exit with.
# KEDGE=PROGRAM: this one, without a build. ACCELERATOR=cpu and VOCAB=512 try a benchmark without a GPU. MPS=1 starts CUDA's multi-process service, so that
# kernels of several processes run next to each other: without it they take turns on a card, of 2 ms each.
# shellcheck shell=bash
# shellcheck disable=SC2034  # those who source this read what it sets
accelerator=${ACCELERATOR:-gpu}
shape=${SHAPE:-1b}
preset=${PRESET:-cuda}  # cuda-ci: for Hopper alone, built in a third of the time
kedge=${KEDGE:-$PWD/build/$preset/bin/kedge}
if [ -z "${KEDGE:-}" ]; then
  export KEDGE_SETUP_DONE=1
  : "${KEDGE_TORCH:=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')}"
  export KEDGE_TORCH
  SECONDS=0
  scripts/build "$preset" kedge_program >/tmp/build-cuda.log 2>&1 || { grep -E 'error|FAILED' -A 5 /tmp/build-cuda.log | head -n 40; exit 1; }
  echo "built in $SECONDS s"
fi
work=${KEDGE_BENCH_DIR:-$(mktemp -d)}
mkdir -p "$work"
server='' watcher='' failed=0
end() {  # of a process that was started here
  [ -n "$1" ] || return 0
  kill "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}
leave() {
  end "$server"
  end "$watcher"
  [ "${MPS:-}" != 1 ] || echo quit | nvidia-cuda-mps-control
  [ -n "${KEDGE_BENCH_DIR:-}" ] || rm -rf "$work"
}
if [ "${MPS:-}" = 1 ]; then
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
  mkdir -p "$work/mps"
  nvidia-cuda-mps-control -d || exit 1
fi
trap leave EXIT

# A tokenizer with as many tokens as Llama 3's: letters, and words that no text is split into but that random weights sample. Its words are of
# different lengths, so that a reward for characters distinguishes answers. Prompts are 128 letters.
make_inputs() {
  [ -e "$work/prompts.jsonl" ] && return
  mkdir -p "$work/words"
  python3 - "$work" "${VOCAB:-128256}" <<'PYTHON' || failed=1
import json, random, sys
work, size = sys.argv[1], int(sys.argv[2])
vocab = {letter: i for i, letter in enumerate("abc")} | {f"_{i:x}": i for i in range(3, size - 1)}
end = dict(id=size - 1, content="<eos>", special=True, single_word=False, lstrip=False, rstrip=False, normalized=False)
json.dump({"version": "1.0", "added_tokens": [end], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
           "decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open(f"{work}/words/tokenizer.json", "w"))
json.dump({"eos_token": "<eos>"}, open(f"{work}/words/tokenizer_config.json", "w"))
random.seed(1)
with open(f"{work}/prompts.jsonl", "w") as file:
    for _ in range(64 * 16):
        print(json.dumps({"text": "".join(random.choice("abc") for _ in range(128))}), file=file)
PYTHON
}
make_model() {  # name, then further options
  local name=$1-$shape
  shift
  [ -d "$work/$name" ] || "$kedge" init "$work/$name" --shape "$shape" --tokenizer "$work/words" --dtype bf16 "$@" >"$work/init.log" 2>&1 ||
    { tail -n 5 "$work/init.log"; failed=1; }
}
card_mib() { [ "$accelerator" != gpu ] || nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits --id=0; }
# watch_card NAME: until unwatch_card; its first line is what others hold.
watch_card() {
  card_mib >"$work/card-$1.txt"
  while sleep 0.5; do card_mib; done >>"$work/card-$1.txt" &
  watcher=$!
  echo "$EPOCHREALTIME" >"$work/started-$1"
}
unwatch_card() {
  end "$watcher"
  watcher=
}
# start_server ARGUMENT...: of kedge; ready when this returns, with its $port, which is empty where it failed.
start_server() {
  : >"$work/serve.txt"
  "$kedge" "$@" >>"$work/serve.txt" 2>&1 &
  server=$! port=
  for _ in $(seq 600); do
    port=$(sed -n 's|.*ready .*http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$work/serve.txt")
    [ -n "$port" ] && return
    kill -0 $server 2>/dev/null || break
    sleep 0.2
  done
  tail -n 5 "$work/serve.txt"
  failed=1
}
end_server() {
  end "$server"
  server=
}
