"""Whole tokenizer.json files of every kind we support, made with `tokenizers`: equal ids and equal text back."""

import copy
import json
import pathlib
import tempfile

from tokenizer_peers import Differences, ask, compare_with_tokenizers, random_texts
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

NUM_TEXTS = 4000
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ENGLISH = "the cat's tail isn't longer than they'll say; we've seen 1234567 of them, and I'd rather not count to 20. " * 3
TRAINING = random_texts(3000, 1) + [ENGLISH] * 50


def trained_bpe(pre_tokenizer=None, normalizer=None, special=("<unk>",), size=1500, **options):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **options))
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    spelling = {key: value for key, value in options.items() if key in ("continuing_subword_prefix", "end_of_word_suffix")}
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, limit_alphabet=200, **spelling)
    tokenizer.train_from_iterator(TRAINING, trainer)
    return tokenizer


def byte_level(**options):
    p = pre_tokenizers
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = p.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|end|>"], show_progress=False, initial_alphabet=p.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TRAINING, trainer)
    return tokenizer


def changed(tokenizer, change):
    """The same after `change` has been made to its JSON."""
    data = json.loads(tokenizer.to_str())
    change(data)
    return Tokenizer.from_str(json.dumps(data))


def sentencepiece_like():
    """As Llama 2's converted file: no pre-tokenizer, spaces as U+2581, bytes for what the vocabulary lacks."""
    n, d = normalizers, decoders
    tokenizer = trained_bpe(normalizer=n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")]), pre_tokenizer=pre_tokenizers.Split("\u2581", "merged_with_next"))

    def widen(data):
        vocab = data["model"]["vocab"]
        for token in BYTES:
            vocab[token] = len(vocab)
        data["pre_tokenizer"] = None
        data["model"].update(byte_fallback=True, fuse_unk=True)

    tokenizer = changed(tokenizer, widen)
    tokenizer.decoder = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    return tokenizer


def unigram(byte_fallback):
    """Metaspace and a Unigram model, as T5 and XLM-R have it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=2500, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([ENGLISH] * 20 + TRAINING[:300], trainer)
    if not byte_fallback:
        return tokenizer

    def widen(data):
        data["model"]["vocab"] += [[token, -20.0] for token in BYTES]
        data["model"]["byte_fallback"] = True
        data["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}

    return changed(tokenizer, widen)


def variants():
    p, d, n = pre_tokenizers, decoders, normalizers
    base = byte_level()
    yield "byte-level", base
    yield "ignore_merges", changed(base, lambda data: data["model"].update(ignore_merges=True, merges=data["model"]["merges"][::2]) or keep_reachable(data))
    yield "merges as lines", changed(base, lambda data: data["model"].update(merges=[" ".join(pair) for pair in data["model"]["merges"]]))
    yield "missing bytes", changed(base, drop_some_bytes)
    yield "missing bytes with unk", changed(base, lambda data: (drop_some_bytes(data), data["model"].update(unk_token="<|end|>")))
    yield "missing bytes with fused unk", changed(base, lambda data: (drop_some_bytes(data), data["model"].update(unk_token="<|end|>", fuse_unk=True)))

    llama3 = copy.deepcopy(base)
    llama3.pre_tokenizer = p.Sequence(
        [
            p.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
            p.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    llama3.add_special_tokens(["<|begin|>", "<|eot|>"])
    llama3.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B", special_tokens=[("<|begin|>", llama3.token_to_id("<|begin|>"))])]
    )
    yield "Llama 3", changed(llama3, lambda data: data["model"].update(ignore_merges=True))

    falcon = copy.deepcopy(base)
    falcon.pre_tokenizer = p.Sequence([p.Punctuation("contiguous"), p.ByteLevel(add_prefix_space=False), p.Digits(individual_digits=False), p.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    yield "Falcon", falcon
    starcoder = copy.deepcopy(base)
    starcoder.pre_tokenizer = p.Sequence([p.Digits(individual_digits=True), p.ByteLevel(add_prefix_space=False)])
    yield "StarCoder", starcoder
    prefixed = copy.deepcopy(base)
    prefixed.pre_tokenizer = p.ByteLevel(add_prefix_space=True)
    prefixed.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    yield "Roberta", prefixed

    yield "SentencePiece-like", sentencepiece_like()
    gemma = sentencepiece_like()
    gemma.normalizer = n.Replace(" ", "\u2581")
    gemma.pre_tokenizer = p.Split(" ", "merged_with_previous")
    gemma.decoder = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse()])
    gemma.add_special_tokens(["<bos>", "<start_of_turn>"])
    gemma.add_tokens(["\n\n", "\n\n\n", "\u2581\u2581", "\u2581\u2581\u2581"])
    yield "Gemma", gemma
    for scheme in ("always", "first", "never"):
        mistral = sentencepiece_like()
        mistral.normalizer = None
        mistral.pre_tokenizer = p.Metaspace(prepend_scheme=scheme, split=False)
        mistral.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("[INST]", normalized=False)])
        mistral.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", mistral.token_to_id("<s>"))])
        yield f"Metaspace {scheme}", mistral
    yield "some bytes only", changed(sentencepiece_like(), lambda data: remove_tokens(data, BYTES[0x80:0x90]))
    yield "some bytes only, unfused", changed(sentencepiece_like(), lambda data: (remove_tokens(data, BYTES[0x80:0x90]), data["model"].update(fuse_unk=False)))
    stripped = sentencepiece_like()
    stripped.normalizer = n.Sequence([n.Strip(left=True, right=False), n.Replace(Regex(" +"), " ")])
    stripped.pre_tokenizer = p.Metaspace(prepend_scheme="first")
    yield "prefix after stripping", stripped

    for fuse in (False, True):
        yield f"words, fuse_unk {fuse}", trained_bpe(p.Whitespace(), fuse_unk=fuse)
    yield "unknown characters vanish", changed(trained_bpe(p.Whitespace()), lambda data: data["model"].update(unk_token=None))
    yield "unknown bytes vanish", changed(sentencepiece_like(), lambda data: (remove_tokens(data, BYTES[0x80:0x90]), data["model"].update(unk_token=None)))
    yield "byte tokens merge", changed(sentencepiece_like(), merge_bytes)
    suffixed = trained_bpe(p.WhitespaceSplit(), n.Lowercase(), end_of_word_suffix="</w>")
    suffixed.decoder = d.BPEDecoder("</w>")
    yield "end_of_word_suffix", suffixed
    yield "continuing_subword_prefix", trained_bpe(p.Whitespace(), continuing_subword_prefix="##")
    yield "no decoder", trained_bpe(p.BertPreTokenizer(), n.NFKC())
    for byte_fallback in (False, True):
        yield f"Unigram, byte_fallback {byte_fallback}", unigram(byte_fallback)
    metaspace = trained_bpe(p.Metaspace())
    for scheme in ("always", "never"):
        metaspace.decoder = d.Metaspace(prepend_scheme=scheme)
        yield f"Metaspace decoder {scheme}", copy.deepcopy(metaspace)
    for decoder in (
        d.Sequence([d.ByteFallback(), d.Metaspace()]),
        d.Sequence([d.Fuse(), d.Replace(Regex(r"\u2581+"), " "), d.Strip(" ", 2, 0)]),
        d.Sequence([d.Replace("\u2581", " "), d.Strip("e", 1, 0), d.Fuse()]),
        d.Sequence([d.Replace("t", "T"), d.ByteLevel()]),
        d.Fuse(),
    ):
        metaspace.decoder = decoder
        yield f"decoder {decoder}", copy.deepcopy(metaspace)

    for normalizer in (None, n.Lowercase(), n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")]), n.NFKC()):
        yield f"added tokens, {normalizer}", with_added_tokens(copy.deepcopy(base), normalizer)


def remove_tokens(data, tokens):
    """Takes tokens out of the vocabulary, with the merges that need them, and closes the ranks."""
    model = data["model"]
    gone = set(tokens)
    while True:
        more = {a + b for a, b in model["merges"] if a in gone or b in gone}
        model["merges"] = [pair for pair in model["merges"] if pair[0] not in gone and pair[1] not in gone and pair[0] + pair[1] not in gone]
        if more <= gone:
            break
        gone |= more
    kept = [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1]) if token not in gone]
    model["vocab"] = {token: id for id, token in enumerate(kept)}
    for token in data["added_tokens"]:
        token["id"] = model["vocab"][token["content"]]


def merge_bytes(data):
    """Merges of byte tokens and of the unknown token, which no trainer makes."""
    vocab = data["model"]["vocab"]
    for pair in (["<0xC3>", "<0xA9>"], ["<unk>", "e"], ["<0x0A>", "a"], ["e", "<0x0A>"]):
        vocab["".join(pair)] = len(vocab)
        data["model"]["merges"].insert(0, pair)


def drop_some_bytes(data):
    remove_tokens(data, ["a", "7", "\u0120", "\u00e2"])


def keep_reachable(data):
    """Merges whose sides are still made by other merges or are single characters."""
    made = {token for token in data["model"]["vocab"] if len(token) == 1}
    kept = []
    for left, right in data["model"]["merges"]:
        if left in made and right in made:
            made.add(left + right)
            kept.append([left, right])
    data["model"]["merges"] = kept


def with_added_tokens(tokenizer, normalizer):
    tokenizer.normalizer = normalizer
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    tokens = []
    for mask in range(16):
        chosen = {flag: bool(mask >> i & 1) for i, flag in enumerate(flags)}
        tokens.append(AddedToken(f"[T{mask:x}]", special=mask % 3 == 0, **chosen))
    tokens += [AddedToken("the", single_word=True), AddedToken("Cat", normalized=True), AddedToken("caf\u00e9", normalized=True)]
    tokens += [AddedToken("  ", normalized=False), AddedToken("[T1][T2]", normalized=False), AddedToken("\u00e9", lstrip=True, normalized=False)]
    tokenizer.add_tokens(tokens)
    return tokenizer


def main():
    differences = Differences()
    count = 0
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "tokenizer.json"
        for seed, (label, tokenizer) in enumerate(variants()):
            tokenizer.save(str(path))
            theirs = Tokenizer.from_file(str(path))
            added = [token.content for token in theirs.get_added_tokens_decoder().values()]
            texts = random_texts(NUM_TEXTS, seed, added + ["the", "cat", "Cat", "caf\u00e9", " ", "a"])
            compare_with_tokenizers(label, theirs, path, texts, differences)
            count += 1
    differences.exit(f"{count} tokenizers, {NUM_TEXTS} strings each")


main()
