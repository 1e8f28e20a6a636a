"""Writes mistral_ids.txt: the ids SentencePiece itself gives the strings of assets/tokenizers/vectors with Mistral's first model.

    pip install sentencepiece==0.2.2 && python make_mistral_ids.py ASSETS
"""

import pathlib
import sys

import sentencepiece

assets = pathlib.Path(sys.argv[1])
model = sentencepiece.SentencePieceProcessor(model_file=str(assets / "tokenizers/mistral/tokenizer.model.v1"))
strings = (assets / "tokenizers/vectors/ggml-vocab-llama-spm.gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
with open(pathlib.Path(__file__).with_name("mistral_ids.txt"), "w", encoding="utf-8") as out:
    for string in strings[:-1]:
        out.write(" ".join(map(str, model.encode(string))) + "\n")
