"""Rows of the learning benches as token ids, cut exactly as kedge cuts them (docs/data.md), so that both sides train on the same tokens."""

import json
import pathlib

import tokenizers


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Encoder:
    """A model folder's tokenizer with its BOS and EOS."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "config.json").read_text())
        self.bos, self.eos, self.max_length = config["bos_token_id"], config["eos_token_id"], config["max_position_embeddings"]

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def answer(self, row):
        """Of {"input", "output"} as `kedge sft` with add_bos reads it: ids, and 1 where an id is trained on."""
        prompt = [self.bos] + self.ids(row["input"].strip(" "))
        answer = self.ids(row["output"].strip(" ")) + [self.eos]
        return prompt + answer, [0] * len(prompt) + [1] * len(answer)

    def pair(self, row):
        """Of {"prompt", "chosen", "rejected"} as `kedge rm` with add_bos and append_eod reads it: ids of the better and the worse text."""
        return tuple([self.bos] + self.ids(row["prompt"] + row[side]) + [self.eos] for side in ("chosen", "rejected"))
