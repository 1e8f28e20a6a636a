"""Equal ids, and equal text back, over every corpus in assets for every tokenizer there.

tokenizer_corpora_test.py TOKENIZE_LINES N: each tokenizer reads every Nth text, each beginning at another one.
"""

import gzip
import json
import sys

import sentencepiece
from tokenizers import Tokenizer
from tokenizer_peers import ASSETS, JSON_FILES, MODEL_FILES, Differences, ask, compare_with_tokenizers, want_assets

def lines_of_json(path, *keys):
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield from (row[key] for key in keys)


def corpora():
    for name in ("corpora/tinyshakespeare/input.txt", "corpora/tinystories-sample/tinystories.txt"):
        whole = (ASSETS / name).read_text(encoding="utf-8")
        yield whole
        yield from whole.split("\n\n")
    yield from lines_of_json(ASSETS / "prompts/gsm8k/test.jsonl", "question", "answer")
    yield from lines_of_json(ASSETS / "prompts/stories/prompts.jsonl", "text")
    with gzip.open(ASSETS / "preference/hh-rlhf-harmless-test/harmless-base-test.jsonl.gz", "rt", encoding="utf-8") as rows:
        for row in rows:
            yield json.loads(row)["chosen"]
    for row in json.loads((ASSETS / "preference/raschka-dpo/instruction-data-with-preference.json").read_text(encoding="utf-8")):
        yield from (row["instruction"], row["input"], row["chosen"], row["rejected"])
    for row in json.loads((ASSETS / "preference/llamafactory/dpo_en_demo.json").read_text(encoding="utf-8")):
        yield row["chosen"]["value"]


def main():
    want_assets()
    texts = list(corpora())
    step = int(sys.argv[2])
    shares = [texts[first % step :: step] for first in range(len(JSON_FILES) + len(MODEL_FILES))]
    differences = Differences()
    for name, share in zip(JSON_FILES, shares):
        compare_with_tokenizers(name, Tokenizer.from_file(str(ASSETS / name)), ASSETS / name, share, differences)
    for name, share in zip(MODEL_FILES, shares[len(JSON_FILES) :]):
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(ASSETS / name))
        for text, reply in zip(share, ask("model", ASSETS / name, [{"text": text} for text in share])):
            ids = theirs.encode(text)
            differences.check(name, text[:200], reply["ids"], ids)
            differences.check(name + " decoded", text[:200], reply["decoded"], theirs.decode(ids))
    differences.exit(f"{sum(map(len, shares))} texts of {len(texts)}, {len(shares)} tokenizers")


main()
