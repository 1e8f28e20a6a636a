# Sourced by the tests of the examples with chat models, after commands_support.sh.
fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
# make_chat_model FOLDER: a random network of two layers, a tokenizer of single bytes, and a chat template.
make_chat_model() {
  mkdir "$1-tokenizer"
  python3 - "$1-tokenizer" <<'PY'
import json, sys
# The characters that stand for bytes in such tokenizers.
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [byte for byte in range(256) if byte not in printable]
characters = sorted([chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))])
special = ["<|im_start|>", "<|im_end|>"]
added = [{"id": 256 + i, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
         for i, text in enumerate(special)]
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
           "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate(characters)}, "merges": []}}, open(f"{sys.argv[1]}/tokenizer.json", "w"))
json.dump({"eos_token": "<|im_end|>"}, open(f"{sys.argv[1]}/tokenizer_config.json", "w"))
open(f"{sys.argv[1]}/chat_template.jinja", "w").write(
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PY
  "$kedge" init "$1" --shape tiny --tokenizer "$1-tokenizer" --max-positions 2048 --threads 1 >/dev/null 2>&1 || fail "kedge init $1"
}
