"""Times the `tokenizers` and `sentencepiece` packages and ours on the same text, one thread each, in turn.

    python bench/rivals/tokenizers_speed.py build/ci/bench/bench_tokenize [ASSETS]

The packages are those of tests/requirements.txt. Prints one JSON line for each tokenizer and way of cutting the text; `ratio`
is our speed over theirs.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import json
import pathlib
import statistics
import subprocess
import sys
import time

import sentencepiece
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [
    ("gpt2", "json", "tokenizers/gpt2/tokenizer.json"),
    ("gpt-neox", "json", "tokenizers/gpt-neox/20B_tokenizer.json"),
    ("qwen2.5", "json", "tokenizers/qwen2.5/tokenizer.json"),
    ("tinystories", "json", "models/tinystories-656k/tokenizer.json"),
    ("mistral", "model", "tokenizers/mistral/tokenizer.model.v1"),
]
TEXTS = ["corpora/tinyshakespeare/input.txt", "corpora/tinystories-sample/tinystories.txt"]
REPEATS = 5


def their_encoder(kind, path):
    if kind == "model":
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        return lambda texts: sum(len(ids) for ids in processor.encode(texts, num_threads=1))
    tokenizer = Tokenizer.from_file(str(path))
    # The fast form computes no offsets: the like of what ours returns.
    return lambda texts: sum(len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False))


def timed(encode, texts):
    times = []
    for turn in range(REPEATS + 1):
        start = time.perf_counter()
        tokens = encode(texts)
        if turn > 0:
            times.append(time.perf_counter() - start)
    return tokens, statistics.median(times)


def main():
    assets = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("KEDGE_ASSETS", ROOT.parent / "shared" / "assets"))
    files = [assets / name for name in TEXTS]
    for name, kind, path in CASES:
        load_start = time.perf_counter()
        encode = their_encoder(kind, assets / path)
        load_s = time.perf_counter() - load_start
        for cut in ("whole", "paragraphs"):
            texts = [part for file in files for part in ([file.read_text("utf-8")] if cut == "whole" else file.read_text("utf-8").split("\n\n"))]
            tokens, seconds = timed(encode, texts)
            command = [sys.argv[1], kind, str(assets / path), cut, str(REPEATS), *map(str, files)]
            ours = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            assert ours["tokens"] == tokens, (ours["tokens"], tokens)
            theirs = ours["bytes"] / seconds / 1e6
            print(
                json.dumps(
                    {
                        "tokenizer": name,
                        "cut": cut,
                        "mb_per_s": round(ours["mb_per_s"], 2),
                        "rival_mb_per_s": round(theirs, 2),
                        "ratio": round(ours["mb_per_s"] / theirs, 1),
                        "load_s": round(ours["load_s"], 3),
                        "rival_load_s": round(load_s, 3),
                    }
                ),
                flush=True,
            )


main()
