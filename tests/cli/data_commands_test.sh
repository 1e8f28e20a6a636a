#!/usr/bin/env bash
# kedge tokenize and kedge data as a user meets them, with a tokenizer of a few letters. data_commands_test.sh KEDGE
set -uo pipefail
. "$(dirname "$0")/commands_support.sh"
make_letters model
printf '{"text": "ab c"}\n{"text": "c a"}\n{"text": "ab c"}\n{"text": 3}\nbroken\n' >prompts.jsonl
printf '{"text": "c a"}\n{"text": "c c c"}\n' >other.jsonl
printf '{"chosen": "\\n\\nHuman: a\\n\\nAssistant: b", "rejected": "\\n\\nHuman: a\\n\\nAssistant: c"}\n' >hh.jsonl
printf '{"chosen": "\\n\\nHuman: a\\n\\nAssistant: b", "rejected": "\\n\\nHuman: b\\n\\nAssistant: c"}\n' >>hh.jsonl

piped() { printf '%s' "$1" | "$kedge" tokenize --model model; }

expect 0 '^\{"ids": \[4, 2, 3\]\}$' "$kedge" tokenize --model model --text 'ab c'
expect 0 '"pieces": \["ab", " ", "c"\]' "$kedge" tokenize --model model --text 'ab c' --pieces
expect 0 '^\{"ids": \[4, 6\]\}$' piped '{"text": "ab<eos>"}'
expect 0 '^\{"text": "ab c"\}$' piped '{"ids": [4, 2, 3]}'
expect 2 'standard input:2: ids: id 99 is outside the vocabulary of 7' piped $'{"ids": [4]}\n{"ids": [99]}'
expect 2 'standard input:1: expected an object with "text" or with "ids"' piped '{"txt": "a"}'
expect 2 'standard input:1:3: not valid JSON' piped '{"'
expect 2 'missing --model' "$kedge" tokenize --text a
expect 2 'nowhere' "$kedge" tokenize --model nowhere --text a

expect 0 'prompts.jsonl:4' "$kedge" data check prompts.jsonl --as prompts --model model
expect 0 'prompts.jsonl:5' "$kedge" data check prompts.jsonl --as prompts --model model
expect 0 '^1 of 2 prompts of other.jsonl are in prompts.jsonl too, the first at other.jsonl:1$' "$kedge" data check prompts.jsonl other.jsonl --model model
expect 2 'other.jsonl: none of its 2 rows can be used' "$kedge" data check other.jsonl --as kto --model model
expect 2 'expected prompts . sft . chat' "$kedge" data check prompts.jsonl --as stories --model model
expect 2 'none.jsonl: cannot be read: No such file' "$kedge" data check none.jsonl --model model
expect 2 'nearest: check' "$kedge" data chek
expect 0 '2' "$kedge" data prepare hh hh.jsonl --comparisons c.jsonl --prompts p.jsonl
expect 0 '^2$' bash -c 'wc -l < c.jsonl'
expect 0 '^1$' bash -c 'wc -l < p.jsonl'
expect 0 '^\{"text": "\\n\\nHuman: a\\n\\nAssistant:"\}$' cat p.jsonl
cp -r model chatty
printf '%s' '{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}' >chatty/chat_template.jinja
echo '{"messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "a"}]}' >chats.jsonl
expect 0 '1 rows in 1 packs' "$kedge" data pack chats.jsonl packs.jsonl --model chatty --pack-size 64 --sft.chat
expect 0 '^\{"input_ids": \[1, 6, 0, 6\], "loss_mask": \[0, 1, ' cat packs.jsonl
[ "$failures" = 0 ] && echo "all as expected"
exit "$((failures > 0))"
