"""SentencePiece models of every kind we support, trained by SentencePiece: equal ids and equal text back."""

import io
import itertools
import pathlib
import tempfile

import sentencepiece
from tokenizer_peers import Differences, ask, random_texts

NUM_TEXTS = 3000
ENGLISH = "the cat's tail isn't longer than they'll say; we've seen 1234567 of them, and I'd rather not count to 20."
TRAINING = [text.replace("\n", " ") for text in random_texts(2000, 1) if "\0" not in text] + [ENGLISH] * 3000
OPTIONS = {
    "plain": {},
    "bytes": {"byte_fallback": True},
    "spaces kept": {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True, "byte_fallback": True},
    "no dummy space": {"add_dummy_prefix": False},
    "suffixes": {"treat_whitespace_as_suffix": True},
    "across words": {"split_by_whitespace": False, "split_by_unicode_script": False, "remove_extra_whitespaces": False},
    "symbols": {"user_defined_symbols": ["<sep>", "the cat", "\u00e9", "tt", "##", "\u2581\u2581"], "control_symbols": ["<ctrl>"], "pad_id": 3},
    "digits": {"split_digits": True, "unk_surface": "?", "bos_piece": "[B]", "eos_id": -1},
}


def trained(algorithm, rule, options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING), model_writer=model, model_type=algorithm, vocab_size=2500, character_coverage=0.98, normalization_rule_name=rule,
        hard_vocab_limit=False, minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def main():
    differences = Differences()
    count = 0
    cases = list(itertools.product(("bpe", "unigram"), ("identity", "nmt_nfkc"), OPTIONS)) + [("unigram", "nfkc_cf", "plain"), ("bpe", "nmt_nfkc_cf", "bytes")]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.model"
        for seed, (algorithm, rule, name) in enumerate(cases):
            label = f"{algorithm} {rule} {name}"
            path.write_bytes(trained(algorithm, rule, OPTIONS[name]))
            theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
            texts = random_texts(NUM_TEXTS, seed, ["<sep>", "<ctrl>", "the cat", "<s>", "</s>", "<unk>", "##", "<0x0A>", "tt"])
            texts.append(" ".join(texts))  # long enough for SentencePiece to start its sums again
            for text, reply in zip(texts, ask("model", path, [{"text": text} for text in texts])):
                ids = theirs.encode(text)
                differences.check(label, text[:200], reply.get("ids", reply), ids)
                differences.check(label + " decoded", text[:200], reply.get("decoded", reply), theirs.decode(ids))
            count += 1
    differences.exit(f"{count} models, {NUM_TEXTS} strings each")


main()
