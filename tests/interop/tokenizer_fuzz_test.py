"""100,000 strings that no writer would write: equal ids and equal text back for the tokenizers in assets."""

import random

import sentencepiece
from tokenizers import Tokenizer
from tokenizer_peers import ASSETS, JSON_FILES, MODEL_FILES, Differences, ask, compare_with_tokenizers, random_texts, want_assets


def random_ids(theirs, count, seed):
    rng = random.Random(seed)
    return [[rng.randrange(theirs.get_vocab_size()) for _ in range(rng.randint(1, 12))] for _ in range(count)]


def main():
    want_assets()
    differences = Differences()
    total = 0
    for seed, name in enumerate(JSON_FILES):
        theirs = Tokenizer.from_file(str(ASSETS / name))
        texts = random_texts(20_000, seed, [token.content for token in theirs.get_added_tokens_decoder().values()])
        compare_with_tokenizers(name, theirs, ASSETS / name, texts, differences)
        total += len(texts)
        if "tinystories" in name:
            continue  # bytes that make no character are U+FFFD there one by one; ours stay what they are
        lists = random_ids(theirs, 2_000, seed)
        for ids, reply in zip(lists, ask("json", ASSETS / name, [{"ids": ids} for ids in lists])):
            differences.check(name + " of random ids", ids, reply["decoded"], theirs.decode(ids, skip_special_tokens=False))
    for seed, name in enumerate(MODEL_FILES):
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(ASSETS / name))
        texts = random_texts(10_000, 100 + seed, ["<s>", "</s>", "<unk>", "[INST]", "<0x0A>", "\u2581\u2581"])
        total += len(texts)
        for text, reply in zip(texts, ask("model", ASSETS / name, [{"text": text} for text in texts])):
            ids = theirs.encode(text)
            differences.check(name, text, reply["ids"], ids)
            differences.check(name + " decoded", text, reply["decoded"], theirs.decode(ids))
    differences.exit(f"{total} strings")


main()
