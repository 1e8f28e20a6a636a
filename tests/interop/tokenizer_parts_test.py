"""Every normalizer and pre-tokenizer we support, with every option, beside those of `tokenizers`, on strings no writer would write."""

import json
import pathlib
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizer_peers import Differences, ask, random_texts
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

NUM_TEXTS = 1000
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]

# As public tokenizer files have them, and constructs of Oniguruma that PCRE2 reads differently.
EXPRESSIONS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|\s+|.",
    "deepseek letters": r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+",
    "deepseek symbols": r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    "deepseek cjk": r"[一-龥\u0800-一가-퟿]+",
    "deepseek v3": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "falcon digits": r"[0-9][0-9][0-9]",
    "spaces": r" {2,}",
    "trailing": r"\s+$",
    "line starts": r"^.",
    "whole line": r"^.*$",
    "dot all": r"(?m:a.)|(?m)x.",
    "digits": r"\d+",
    "not digits": r"\D+",
    "words": r"\w+",
    "not words": r"\W+",
    "word boundary": r"\b\w",
    "no boundary": r"\B.",
    "hex": r"\h+|\H",
    "negated property": r"\P{L}+|\p{^N}",
    "class of all": r"[\s\S]{1,5}",
    "negated class in class": r"[\S\d]+|[^\P{Lu}]",
    "posix": r"[[:space:]]+|[[:punct:]]+|[[:digit:][:xdigit:]]|[^[:ascii:]]",
    "interval of interval": r"(?:ab|\d){2}{2}|\d{1,2}+|[a-z]{2}?|\S{,2}x",
    "lazy and possessive": r"\w+?\s|\d*+a|[a-f]??g",
    "look behind": r"(?<=\s)\S|(?<!\p{L})\p{L}",
    "atomic": r"(?>\p{L}+)\d|x",
    "case": r"(?i)straße|ſ|k|[à-þ]+",
    "code points": r"\u00e9|\x{1F600}|[\x41-\x5a]+|\t|\n",
    "empty matches": r"\d*",
    "new lines": r"\R",
    "ends": r"\A.|.\z|\S\Z",
    "nothing": r"",
    "braces": r"a{|{}|x{,}",
    "script": r"\p{Hiragana}+|\p{Katakana}+|\p{Cyrillic}+|\p{Hangul}+",
}  # fmt: skip


def charsmap(folder, name):
    """SentencePiece's own table of that name, as a small model trained with it holds it."""
    text = folder / "text.txt"
    text.write_text("\n".join(["the quick brown fox", "jumps over", "a lazy dog"] * 20), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / name), vocab_size=40, normalization_rule_name=name, hard_vocab_limit=False, minloglevel=2
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((folder / f"{name}.model").read_bytes())
    return model.normalizer_spec.precompiled_charsmap


def all_normalizers(folder):
    n = normalizers
    yield from ((type(one).__name__, one) for one in (n.NFC(), n.NFD(), n.NFKC(), n.NFKD(), n.Lowercase(), n.StripAccents(), n.Nmt(), n.ByteLevel()))
    for left in (False, True):
        for right in (False, True):
            yield f"Strip {left} {right}", n.Strip(left=left, right=right)
    yield "Prepend", n.Prepend("\u2581")
    yield "Replace text", n.Replace(" ", "\u2581")
    yield "Replace text by nothing", n.Replace("'", "")
    for name, expression in EXPRESSIONS.items():
        yield f"Replace {name}", n.Replace(Regex(expression), "<>")
    yield "Llama 2", n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")])
    yield "T5", n.Sequence([n.Strip(left=False, right=True), n.Replace(Regex(" {2,}"), "\u2581")])
    yield "Accents", n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase(), n.NFC()])
    for name in ("nmt_nfkc", "nfkc_cf"):
        yield f"Precompiled {name}", n.Precompiled(charsmap(folder, name))


def all_pre_tokenizers():
    p = pre_tokenizers
    for name, expression in EXPRESSIONS.items():
        for behavior in BEHAVIORS:
            yield f"Split {name} {behavior}", p.Split(Regex(expression), behavior)
        yield f"Split {name} inverted", p.Split(Regex(expression), "removed", invert=True)
    for behavior in BEHAVIORS:
        yield f"Split text {behavior}", p.Split("'", behavior)
        yield f"Split text {behavior} inverted", p.Split(" ", behavior, invert=True)
        yield f"Punctuation {behavior}", p.Punctuation(behavior)
    for prefix in (False, True):
        for use_regex in (False, True):
            yield f"ByteLevel {prefix} {use_regex}", p.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            yield f"Metaspace {scheme} {split}", p.Metaspace(replacement="\u2581", prepend_scheme=scheme, split=split)
    yield "Digits alone", p.Digits(individual_digits=True)
    yield "Digits", p.Digits(individual_digits=False)
    yield "Whitespace", p.Whitespace()
    yield "WhitespaceSplit", p.WhitespaceSplit()
    yield "Bert", p.BertPreTokenizer()
    yield "Delimiter", p.CharDelimiterSplit("e")
    yield "Sequence", p.Sequence([p.Digits(individual_digits=True), p.Punctuation(), p.ByteLevel(add_prefix_space=False)])
    yield "Sequence with prefixes", p.Sequence([p.WhitespaceSplit(), p.ByteLevel(add_prefix_space=True, use_regex=False)])
    yield "Metaspace of words", p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first"), p.Punctuation("merged_with_next")])


def main():
    differences = Differences()
    count = 0
    texts = [text for text in random_texts(NUM_TEXTS, 7) if text]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def ours(tokenizer):
            tokenizer.save(str(folder / "tokenizer.json"))
            return ask("parts", folder / "tokenizer.json", [{"text": text} for text in texts])

        for label, normalizer in all_normalizers(folder):
            tokenizer = Tokenizer(models.BPE())
            tokenizer.normalizer = normalizer
            for text, reply in zip(texts, ours(tokenizer)):
                differences.check(label, text, reply.get("normalized", reply), normalizer.normalize_str(text))
            count += 1
        for label, pre_tokenizer in all_pre_tokenizers():
            tokenizer = Tokenizer(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizer
            for text, reply in zip(texts, ours(tokenizer)):
                differences.check(label, text, reply.get("words", reply), [word for word, _ in pre_tokenizer.pre_tokenize_str(text)])
            count += 1
    differences.exit(f"{count} parts, {len(texts)} strings each")


main()
