"""minGPT's sorting model as a Hugging Face folder, and the job of sorting the other way round.

    sort_model.py model   OUT       the model of ASSETS/models/gpt-nano-sort, read in place, as config.json, model.safetensors and tokenizer files
    sort_model.py prompts OUT       train.jsonl and held_out.jsonl with {"text": "201102", "answer": "221100"}
    sort_model.py count   FILE ...  of each file of `kedge generate`'s lines: the share of answers in ascending and in descending order

The model reads six digits of 0, 1 and 2 and writes them in ascending order, with nothing in between and no end. Its three outputs stay
what they are: the end token that kedge requires of a tokenizer has the next id, which the network does not have and so never samples. It
knows 11 positions, since the last digit it writes is never read; the folder has a twelfth, like the eleventh, for whoever reads answers
too, as a critic does. KEDGE_ASSETS names the assets folder.
"""

import base64
import itertools
import json
import os
import pathlib
import random
import re
import sys

DIGITS, LENGTH = "012", 6
END = "<|endoftext|>"
ASSETS = pathlib.Path(os.environ.get("KEDGE_ASSETS") or pathlib.Path(__file__).resolve().parents[2] / "shared" / "assets")
SOURCE = ASSETS / "models" / "gpt-nano-sort" / "gpt-nano-sort-model.json"


def read_tensors(path):
    """The configuration and the tensors of its author's JSON: base64 of float32."""
    import torch

    entries = json.loads(path.read_text())
    config = entries.pop("config")
    return config, {name: torch.frombuffer(bytearray(base64.b64decode(entry["data"])), dtype=torch.float32).view(entry["shape"])
                    for name, entry in entries.items()}


def write_model(out):
    import torch
    from safetensors.torch import save_file

    config, source = read_tensors(SOURCE)
    tensors = {}
    for name, value in source.items():
        if name.endswith(".attn.bias"):  # the causal mask
            continue
        turned = re.search(r"c_(attn|proj|fc)\.weight$", name)  # stored [in, out] there
        tensors[name] = (value.t() if turned else value).contiguous()
    positions = tensors["transformer.wpe.weight"]
    tensors["transformer.wpe.weight"] = torch.cat([positions, positions[-1:]])
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    end_id = config["vocab_size"]
    write_json(out / "config.json", dict(
        architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=config["vocab_size"], n_embd=config["n_embd"], n_layer=config["n_layer"],
        n_head=config["n_head"], n_positions=2 * LENGTH, activation_function="gelu_new", tie_word_embeddings=False, embd_pdrop=0.0, resid_pdrop=0.0,
        attn_pdrop=0.0, dtype="float32", bos_token_id=None, eos_token_id=None))
    bytes_as_they_are = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    write_json(out / "tokenizer.json", dict(
        version="1.0", truncation=None, padding=None, normalizer=None, post_processor=None, pre_tokenizer=bytes_as_they_are, decoder=bytes_as_they_are,
        added_tokens=[dict(id=end_id, content=END, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)],
        model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                   byte_fallback=False, ignore_merges=False, vocab={digit: i for i, digit in enumerate(DIGITS)}, merges=[])))
    write_json(out / "tokenizer_config.json", dict(tokenizer_class="PreTrainedTokenizerFast", eos_token=END, model_max_length=2 * LENGTH))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


def write_prompts(out):
    """All inputs in a fixed random order; a quarter is held out."""
    texts = ["".join(digits) for digits in itertools.product(DIGITS, repeat=LENGTH)]
    random.Random(2024).shuffle(texts)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    held_out = len(texts) // 4
    for name, part in (("held_out", texts[:held_out]), ("train", texts[held_out:])):
        rows = [dict(text=text, answer="".join(sorted(text, reverse=True))) for text in part]
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def shares(path):
    """Of kedge generate's lines: how many, and the shares in ascending and in descending order."""
    rows = [json.loads(line) for line in pathlib.Path(path).read_text("utf-8").splitlines()]
    ascending, descending = (sum(row["response"] == "".join(sorted(row["text"], reverse=reverse)) for row in rows) / len(rows)
                             for reverse in (False, True))
    return len(rows), ascending, descending


def count(*paths):
    for path in paths:
        total, ascending, descending = shares(path)
        print(f"{pathlib.Path(path).name}: {total} answers, ascending {100 * ascending:.1f} %, descending {100 * descending:.1f} %")


def main():
    commands = dict(model=write_model, prompts=write_prompts, count=count)
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    if sys.argv[1] == "model" and not SOURCE.exists():
        sys.exit(f"{SOURCE}: not there; KEDGE_ASSETS names the folder with models and data")
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
