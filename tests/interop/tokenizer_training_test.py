"""Our trainer learns the tokenizer that `tokenizers` learns from the same text, and that package loads what ours writes."""

import json
import pathlib
import tempfile

from tokenizer_peers import ASSETS, Differences, ask, compare_with_tokenizers, random_texts
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<pad>", "<bos>", "<eos>"]


def theirs(texts, vocab_size, min_count):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_count, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main():
    differences = Differences()
    cases = {"random text": (random_texts(4000, 3), 1500, 2), "one word": (["aaaa aaaa"], 300, 1), "nothing": ([], 300, 2)}
    corpus = ASSETS / "corpora/tinyshakespeare/input.txt"
    if corpus.exists():
        cases["tinyshakespeare"] = (corpus.read_text(encoding="utf-8").split("\n\n"), 3000, 2)
    else:
        print(f"left out: {corpus} is not there")
    for name, (texts, vocab_size, min_count) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            reply = ask("train", folder, [{"texts": texts, "vocab_size": vocab_size, "min_count": min_count, "special": SPECIAL}])
            differences.check(name, "training", reply, [{"folder": folder}])
            ours = json.loads(path.read_text(encoding="utf-8"))["model"]
            learnt = json.loads(theirs(texts, vocab_size, min_count).to_str())["model"]
            differences.check(name, "vocabulary", ours["vocab"], learnt["vocab"])
            differences.check(name, "merges", ours["merges"], learnt["merges"])
            compare_with_tokenizers(name, Tokenizer.from_file(str(path)), path, random_texts(2000, 5, SPECIAL), differences)
    differences.exit(f"{len(cases)} trainings")


main()
