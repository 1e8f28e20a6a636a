"""Our tokenizers beside the real ones: shared by the tests in this folder.

Each test is a program: `python NAME_test.py TOKENIZE_LINES`, where TOKENIZE_LINES is tests/support/tokenize_lines, built.
It exits with 0, 1 on a difference, or 77 when the assets it wants are not there.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSETS = pathlib.Path(os.environ.get("KEDGE_ASSETS", ROOT.parent / "shared" / "assets"))
SKIPPED = 77

JSON_FILES = [
    "tokenizers/gpt2/tokenizer.json",
    "tokenizers/gpt-neox/20B_tokenizer.json",
    "tokenizers/qwen2.5/tokenizer.json",
    "models/tinystories-656k/tokenizer.json",
]
MODEL_FILES = [
    "tokenizers/mistral/tokenizer.model.v1",
    "tokenizers/mistral/mistral_instruct_tokenizer_240323.model.v3",
    "models/stories260k/tok512.model",
]


def want_assets():
    if not (ASSETS / "tokenizers").is_dir():
        print(f"skipped: no assets in {ASSETS} (name another folder with KEDGE_ASSETS)")
        sys.exit(SKIPPED)


def ask(kind, path, requests):
    """What our tokenizer answers to each request."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
        asked.writelines(json.dumps(request) + "\n" for request in requests)
        asked.seek(0)
        done = subprocess.run([sys.argv[1], kind, str(path)], stdin=asked, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.decode()}")
    replies = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
    assert len(replies) == len(requests), (len(replies), len(requests))
    return replies


class Differences:
    def __init__(self):
        self.count = 0

    def check(self, name, text, ours, theirs):
        if ours == theirs:
            return
        self.count += 1
        if self.count <= 20:
            print(f"{name}: {text!r}\n  ours   {ours!r}\n  theirs {theirs!r}")

    def exit(self, done):
        print(f"{done}, {self.count} differences")
        sys.exit(1 if self.count else 0)


def compare_with_tokenizers(name, theirs, path, texts, differences):
    """Equal ids without and with special tokens, and equal text back."""
    special = {id for id, token in theirs.get_added_tokens_decoder().items() if token.special}
    replies = ask("json", path, [{"text": text} for text in texts])
    plain_ids = [encoding.ids for encoding in theirs.encode_batch_fast(texts, add_special_tokens=False)]
    all_ids = [encoding.ids for encoding in theirs.encode_batch_fast(texts, add_special_tokens=True)]
    decoded = theirs.decode_batch(all_ids, skip_special_tokens=False)
    # Their own skipping misses a special token that the normalizer spells another way.
    skipped = theirs.decode_batch([[id for id in ids if id not in special] for ids in all_ids], skip_special_tokens=False)
    for i, (text, reply) in enumerate(zip(texts, replies)):
        if "error" in reply:
            differences.check(name, text, reply["error"], None)
            continue
        differences.check(name, text, reply["ids"], plain_ids[i])
        differences.check(name + " with special tokens", text, reply["special"], all_ids[i])
        differences.check(name + " decoded", text, reply["decoded"], decoded[i])
        differences.check(name + " skipped", text, reply["skipped"], skipped[i])


# --- strings that no writer would write ---------------------------------------------------------------------------
BLOCKS = [
    (0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0x0, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x20FF),
    (0x2100, 0x21FF), (0x2460, 0x24FF), (0x2580, 0x259F), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
    (0xFB00, 0xFDFF), (0xFE00, 0xFFEF), (0x10000, 0x1FFFF), (0x1F000, 0x1FAFF), (0x20000, 0x3FFFF), (0xE0000, 0xE01EF), (0x0, 0x10FFFF),
]  # fmt: skip
WORDS = (
    "the cat's They'LL don't I've WE'RE naïve façade über 日本語 привет мир 안녕 שלום مرحبا नमस्ते ไทย 1234567 3.14 ١٢٣ ⅷ x² H₂O "
    "foo_bar camelCase http://a.b/c?d=e&f= 👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u1e9b\u0323 ſ 's 'S 'ſ 'll 'Ll ﬁ Å Å Ǆ İ ß ẞ Σς ̈ \u200d \ufeff"
).split(" ")
BLANKS = [" ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x0b", "\x1c", "\u180e", " \n ", "\u2581", " \u2581"]


def random_char(rng):
    first, last = rng.choice(BLOCKS)
    while True:
        code = rng.randint(first, last)
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def random_text(rng, specials):
    parts = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13])):
        kind = rng.random()
        if kind < 0.30:
            parts.append(rng.choice(WORDS))
        elif kind < 0.50:
            parts.append("".join(random_char(rng) for _ in range(rng.randint(1, 6))))
        elif kind < 0.70:
            parts.append(rng.choice(BLANKS) * rng.randint(1, 4))
        elif kind < 0.80 and specials:
            token = rng.choice(specials)
            start = rng.choice([0, 0, 0, rng.randint(0, len(token))])
            parts.append(token[start : rng.choice([len(token), len(token), rng.randint(0, len(token))])])
        elif kind < 0.90:
            parts.append(rng.choice("!?.,;:'\"-()[]{}<>/|@#$%^&*_=+~`\\") * rng.randint(1, 4))
        else:
            parts.append(str(rng.randint(0, 10**12)))
        if rng.random() < 0.3:
            parts.append(" ")
    return "".join(parts)


def random_texts(count, seed, specials=()):
    rng = random.Random(seed)
    specials = list(specials)
    return ["", " ", "\0", "a\0b"] + [random_text(rng, specials) for _ in range(count - 4)]
