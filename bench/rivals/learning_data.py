"""Files for the learning benches, written from the public data under the assets folder.

    learning_data.py sft     OUT [--fold 0]     raschka-dpo's instruction data: train.jsonl, validation.jsonl with {"input", "output"}
    learning_data.py raschka OUT [--fold 0]     its preference pairs: train.jsonl, test.jsonl with {"prompt", "chosen", "rejected"}
    learning_data.py hh      OUT [--fold 0]     hh-rlhf harmless: the same
    learning_data.py stories OUT                the stories sample in pieces of more than 256 tokens: texts.jsonl with {"output"}, and the
                                                first 256 tokens of each in rows.jsonl with {"input_ids"}

A fold is one of five disjoint fifths of a fixed permutation: it is held out, the others are trained on. --epochs N writes N passes over the
training rows, each in its own order, so that whoever reads the file once from top to bottom sees the very batches that others see.
Rows that do not fit the model (--model, --length) are left out here, so that no side has to. Pairs also get test_ids.jsonl, two lines
{"ids"} a pair, better first: what `kedge score` reads. Prints one JSON line with the counts.
"""

import argparse
import gzip
import json
import os
import pathlib
import random

import rival_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDS = 5
SEED = 2024


def instruction_prompt(row):
    given = f"\nGiven: {row['input']}" if row["input"] else ""
    return f"Task: {row['instruction']}{given}\nAnswer:"


def sft_rows(folder):
    rows = json.loads((folder / "raschka-dpo/instruction-data.json").read_text("utf-8"))
    return [dict(input=instruction_prompt(row), output=row["output"]) for row in rows]


def raschka_pairs(folder):
    rows = json.loads((folder / "raschka-dpo/instruction-data-with-preference.json").read_text("utf-8"))
    return [dict(prompt=instruction_prompt(row) + " ", chosen=row["chosen"], rejected=row["rejected"]) for row in rows]


def hh_pairs(folder):
    turn = "\n\nAssistant:"
    pairs = []
    with gzip.open(folder / "hh-rlhf-harmless-test/harmless-base-test.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            (prompt, chosen), (other, rejected) = ((text[: text.rindex(turn) + len(turn)], text[text.rindex(turn) + len(turn):])
                                                   for text in (row["chosen"], row["rejected"]))
            if prompt == other:
                pairs.append(dict(prompt=prompt, chosen=chosen, rejected=rejected))
    return pairs


def write_stories(assets, encoder, out):
    size, length = 1600, 256
    text = (assets / "corpora/tinystories-sample/tinystories.txt").read_text("utf-8")
    pieces = [text[start : start + size] for start in range(0, len(text) - size, size)]
    rows = [dict(input_ids=encoder.ids(piece.strip(" "))[:length]) for piece in pieces]
    assert all(len(row["input_ids"]) == length for row in rows)
    return dict(texts=write(out / "texts.jsonl", [dict(output=piece) for piece in pieces]), rows=write(out / "rows.jsonl", rows))


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


def main():
    assets = pathlib.Path(os.environ.get("KEDGE_ASSETS", ROOT.parent / "shared" / "assets"))
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["sft", "raschka", "hh", "stories"])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--fold", type=int, default=0, choices=range(FOLDS))
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--model", default=assets / "models/tinystories-656k")
    parser.add_argument("--length", type=int, help="the longest row in tokens; the model's own limit where it is not given")
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    encoder = rival_data.Encoder(args.model)
    if args.kind == "stories":
        print(json.dumps(write_stories(assets, encoder, args.out)))
        return
    longest = args.length or encoder.max_length
    rows = dict(sft=sft_rows, raschka=raschka_pairs, hh=hh_pairs)[args.kind](assets / "preference")
    texts_of = (lambda row: encoder.answer(row)[:1]) if args.kind == "sft" else encoder.pair
    fitting = [row for row in rows if all(len(ids) <= longest for ids in texts_of(row))]

    draw = random.Random(SEED)
    order = draw.sample(range(len(fitting)), len(fitting))
    held_out = [fitting[i] for i in order[args.fold :: FOLDS]]
    train = [fitting[i] for place, i in enumerate(order) if place % FOLDS != args.fold]
    passes = [row for _ in range(args.epochs) for row in draw.sample(train, len(train))]

    counts = dict(rows=len(rows), over_long=len(rows) - len(fitting), train=write(args.out / "train.jsonl", passes))
    if args.kind == "sft":
        counts["validation"] = write(args.out / "validation.jsonl", held_out)
    else:
        counts["test"] = write(args.out / "test.jsonl", held_out)
        write(args.out / "test_ids.jsonl", [dict(ids=ids) for row in held_out for ids in encoder.pair(row)])
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
