#!/usr/bin/env bash
# kedge generate as a user meets it, with a random model over a tokenizer of a few letters. generate_test.sh KEDGE
set -uo pipefail
. "$(dirname "$0")/commands_support.sh"
make_letters letters
"$kedge" init plain --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
printf '%s' '{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}c {% endif %}' >letters/chat_template.jinja
"$kedge" init lm --shape tiny --tokenizer letters --threads 1 >/dev/null 2>&1
"$kedge" init short --shape tiny --tokenizer letters --max-positions 6 --threads 1 >/dev/null 2>&1
"$kedge" init judge --shape tiny --tokenizer letters --num-labels 1 --threads 1 >/dev/null 2>&1
"$kedge" init padded --shape tiny --tokenizer letters --vocab-size 64 --threads 1 >/dev/null 2>&1
"$kedge" init ids_only --shape tiny --vocab-size 16 --threads 1 >/dev/null 2>&1

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
same() { cmp -s "$1" "$2" || fail "line ${BASH_LINENO[0]}: $(printf 'differ:\n%s\nand:\n%s' "$(cat "$1")" "$(cat "$2")")"; }
# generate INPUT [FLAG ...]: INPUT on standard input, standard output alone.
generate() {
  local input=$1
  shift
  printf '%s' "$input" | "$kedge" generate --threads 1 "$@" 2>/dev/null
}
# The same with both streams, for `expect`.
piped() { printf '%s' "$1" | "$kedge" generate --threads 1 "${@:2}"; }
# Values of one key, a line each.
lists() { grep -oE "\"$1\": \[[^]]*\]" | sed 's/.*\[\(.*\)\]/\1/'; }
numbers() { grep -oE "\"$1\": [0-9]+" | sed 's/.*: //'; }
texts() { grep -oE "\"$1\": \"[^\"]*\"" | sed 's/[^:]*: "\(.*\)"/\1/'; }
number='-?[0-9.e+-]+'

# One text
expect 0 "^\{\"prompt\": \"ab c\", \"response\": \"[^\"]*\", \"ids\": \[[0-9, ]+\], \"logprobs\": \[$number(, $number)*\], \"finish\": \"(end|length)\"\}\$" \
  "$kedge" generate --model lm --text 'ab c' --max-new-tokens 5
expect 0 '1 row, 5 tokens, .* tokens/s$' "$kedge" generate --model lm --text 'ab c' --max-new-tokens 5 --min-new-tokens 5
text=$(generate '' --model lm --text 'ab c' --max-new-tokens 20 --json | texts response)
same <(printf '%b\n' "$text") <("$kedge" generate --model lm --text 'ab c' --max-new-tokens 20 --stream 2>/dev/null)
expect 0 '1 row, [0-9]+ tokens?, .* tokens/s$' "$kedge" generate --model lm --text 'ab c' --max-new-tokens 5 --stream
expect 2 '--text: no tokens' "$kedge" generate --model lm --text ''
[ -z "$("$kedge" generate --model lm --text '' 2>/dev/null)" ] || fail "an error on standard output"

# What was drawn, its log-probabilities and its text belong together.
generate '' --model lm --text 'ab c' --max-new-tokens 8 --min-new-tokens 8 >one.jsonl
ids=$(lists ids <one.jsonl)
[ "$(wc -w <<<"$ids")" = 8 ] || fail "wanted 8 ids, found $ids"
printf '{"ids": [4, 2, 3, %s]}' "$ids" | "$kedge" logprobs --model lm --threads 1 2>/dev/null | lists logprobs | sed 's/, /\n/g' | tail -n 8 >wanted
lists logprobs <one.jsonl | sed 's/, /\n/g' >found
# One pass over all tokens sums in another order than a step for each.
paste wanted found | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d < 1e-5)) bad = 1 } END { exit bad || NR != 8 }' ||
  fail "log-probabilities differ from those of kedge logprobs: $(paste wanted found)"
same <(generate "{\"ids\": [4, 2, 3]}" --model lm --max-new-tokens 8 --min-new-tokens 8 | lists ids) <(echo "$ids")

# Lines: all ways in, other fields come back, order is that of the input.
mixed=$'{"prompt": "ab", "id": [1, "x"]}\n\n{"text": "c"}\n{"ids": [0, 1]}\n{"messages": [{"role": "user", "content": "ab"}]}\n{"prompt": [{"role": "user", "content": "b"}], "response": "old"}\n'
generate "$mixed" --model lm --max-new-tokens 6 >mixed.jsonl
expect 0 '^5$' bash -c 'wc -l <mixed.jsonl'
expect 0 '^\{"prompt": "ab", "id": \[1, "x"\], "response": "' sed -n 1p mixed.jsonl
expect 0 '^\{"text": "c", "response": "' sed -n 2p mixed.jsonl
expect 0 '^\{"prompt_ids": \[0, 1\], "response": "[^"]*", "ids": \[' sed -n 3p mixed.jsonl
expect 0 '^\{"messages": \[\{"role": "user", "content": "ab"\}\], "response": "' sed -n 4p mixed.jsonl
expect 0 '^\{"prompt": \[\{"role": "user", "content": "b"\}\], "response": "[^o]*", "ids"' sed -n 5p mixed.jsonl
again=$(sed -n 3p mixed.jsonl)
generate "$again" --model lm >again.jsonl
same <(lists prompt_ids <again.jsonl) <(lists ids <<<"$again")
[ "$(grep -o '"[a-z_]*": ' again.jsonl | sort | uniq -d)" = "" ] || fail "a key occurs twice: $(cat again.jsonl)"
printf '%s' "$mixed" >mixed_in.jsonl
same mixed.jsonl <("$kedge" generate --model lm --input mixed_in.jsonl --max-new-tokens 6 --threads 1 2>/dev/null)
same <(generate '{"messages": [{"role": "user", "content": "ab"}]}' --model lm | lists ids) <(generate '{"text": "ab<eos>c "}' --model lm | lists ids)
expect 0 '^$' generate '' --model lm
many=$(for n in $(seq 0 39); do printf '{"prompt": "%s", "n": %s}\n' "$([ $((n % 3)) = 0 ] && echo ab || echo 'c b')" "$n"; done)
generate "$many" --model lm --max-new-tokens 40 --max-running 7 >ordered.jsonl
same <(numbers n <ordered.jsonl) <(seq 0 39)
[ "$(lists ids <ordered.jsonl | awk '{ print NF }' | sort -u | wc -l)" -gt 3 ] || fail "completions of one length show no order"
[ "$(texts finish <ordered.jsonl | sort -u | head -n 1)" = end ] || fail "nothing ended by itself"
generate "$many" --model lm --max-new-tokens 40 --max-running 7 --unordered >unordered.jsonl
same <(numbers n <unordered.jsonl) <(numbers index <unordered.jsonl)
cmp -s <(numbers n <unordered.jsonl) <(seq 0 39) && fail "--unordered kept the order"
same <(sed 's/"index": [0-9]*, //' unordered.jsonl | sort) <(sort ordered.jsonl)

# What a line gets depends on the seed, its number and the sample, not on how many run together or on its neighbours.
what() { sed 's/"logprobs": [^]]*]//'; }
for running in 1 64; do same <(generate "$many" --model lm --max-new-tokens 40 --max-running $running | what) <(what <ordered.jsonl); done
same <(generate "$many" --model lm --max-new-tokens 40 --max-batch-tokens 3 | what) <(what <ordered.jsonl)
# Six blocks of 64 tokens, 32 KiB each, for 40 sequences that want two: they run a few at a time, and some wait in the middle.
long_ones() { generate "$many" --model lm --min-new-tokens 100 --max-new-tokens 100 "$@" | what; }
same <(long_ones --memory 200KiB) <(long_ones)
same <(generate "$(head -n 5 <<<"$many")" --model lm --max-new-tokens 40 | what) <(head -n 5 ordered.jsonl | what)
cmp -s <(generate "$many" --model lm --max-new-tokens 40 --seed 5) ordered.jsonl && fail "another seed draws the same"
cmp -s <(sed -n 1p ordered.jsonl | lists ids) <(sed -n 4p ordered.jsonl | lists ids) && fail "two lines with one prompt draw the same"
greedy() { generate '{"prompt": "ab"}' --model lm --max-new-tokens 12 --min-new-tokens 12 "$@" | lists ids; }
same <(greedy --use-greedy) <(greedy --use-greedy --seed 9)
same <(greedy --use-greedy) <(greedy --top-k 1)
same <(greedy --use-greedy) <(greedy --temperature 0.00001)

# Samples
two=$'{"prompt": "ab"}\n{"prompt": "c"}'
generate "$two" --model lm --samples 3 --max-new-tokens 30 >samples.jsonl
same <(numbers index <samples.jsonl | tr '\n' ' ') <(printf '0 0 0 1 1 1 ')
same <(numbers sample <samples.jsonl | tr '\n' ' ') <(printf '0 1 2 0 1 2 ')
[ "$(lists ids <samples.jsonl | sort -u | wc -l)" -gt 3 ] || fail "samples are alike"
same <(generate "$two" --model lm --max-new-tokens 30 | lists ids) <(grep '"sample": 0' samples.jsonl | lists ids)

# Ends: a string that is one token, one that is text, the end of text, and not before the least length.
generate "$many" --model lm --end-strings c --max-new-tokens 60 >by_token.jsonl
grep -E '"ids": \[([^]]* )?[36],' by_token.jsonl && fail "goes on behind an end token"
grep -qE '"response": "[^"]*c", "ids": \[([^]]* )?3\], .*"finish": "end"' by_token.jsonl || fail "no end by an end token"
grep -qE '"response": "[^"]*", "ids": \[([^]]* )?6\], .*"finish": "end"' by_token.jsonl || fail "no end by the end of text"
grep -q '"response": "[^"]*<eos>' by_token.jsonl && fail "the end of text is in the text"
expect 0 'warning.* end string "ca" is not a single token' piped "$two" --model lm --end-strings ca --max-new-tokens 5
generate "$many" --model lm --end-strings ca --end-strings cb --max-new-tokens 60 >by_text.jsonl
grep -E '"response": "[^"]*(ca|cb)[^"]' by_text.jsonl | grep -vE '"response": "([^"c]|cab|c[^ab])*(ca|cb)?"' && fail "goes on behind an end text"
grep -qE '"response": "[^"]*c(a|b)", .*"finish": "end"' by_text.jsonl || fail "no end by a text"
generate "$many" --model lm --min-new-tokens 10 --max-new-tokens 12 >least.jsonl
lists ids <least.jsonl | awk -F', ' '{ if (NF < 11 || NF > 12) bad = 1; for (i = 1; i <= 10; ++i) if ($i == 6) bad = 1 } END { exit bad || NR != 40 }' ||
  fail "--min-new-tokens 10 --max-new-tokens 12: $(lists ids <least.jsonl)"
generate '{"prompt": "ab"}' --model short --max-new-tokens 50 --min-new-tokens 50 >context.jsonl
[ "$(lists ids <context.jsonl | wc -w)" = 5 ] || fail "a context of 6 leaves 5 tokens behind 1: $(cat context.jsonl)"

# A folder without a tokenizer takes and gives ids.
expect 0 '^\{"prompt_ids": \[3\], "ids": \[[0-9, ]+\], "logprobs": \[[^]]+\], "finish": "length"\}$' generate '{"ids": [3]}' --model ids_only --max-new-tokens 4
expect 2 'ids_only: no tokenizer: expected tokenizer.json' piped '{"prompt": "ab"}' --model ids_only
expect 2 '--end-strings: ids_only has no tokenizer' piped '{"ids": [3]}' --model ids_only --end-strings a
# A model with more ids than its tokenizer draws none that have no text; in a prompt they may stand.
generate '{"ids": [0, 63]}' --model padded --max-new-tokens 200 --min-new-tokens 200 >padded.jsonl
[ "$(lists ids <padded.jsonl | wc -w)" = 200 ] || fail "wanted 200 ids: $(cat padded.jsonl)"
grep -qE '\b([789]|[1-9][0-9])\b' <<<"$(lists ids <padded.jsonl)" && fail "an id without text: $(lists ids <padded.jsonl)"

# Lines that cannot be served: the others go on, and the exit code tells.
bad=$'{"prompt": "ab", "n": 1}\n{"prompt": "", "n": 2}\n{"ids": [7], "n": 3}\n{"ids": [], "n": 4}\n{"messages": [], "n": 5}\n{"prompt": 3, "n": 6}\n{"text": "c", "n": 7}'
expect 2 'standard input:2: no tokens' piped "$bad" --model lm
expect 2 'standard input:3: ids: id 7 is outside the model.s vocabulary of 7' piped "$bad" --model lm
expect 2 '2 rows, .* 5 with an error$' piped "$bad" --model lm
generate "$bad" --model lm >bad.jsonl
same <(numbers n <bad.jsonl) <(seq 1 7)
same <(grep '"finish": "error"' bad.jsonl | numbers n) <(seq 2 6)
expect 0 '^\{"prompt": "", "n": 2, "finish": "error", "error": "standard input:2: no tokens"\}$' sed -n 2p bad.jsonl
expect 0 '^\{"prompt_ids": \[\], "n": 4, "finish": "error", "error": "standard input:4: ids: no tokens"\}$' sed -n 4p bad.jsonl
expect 0 '"error": "standard input:5: messages: no messages"' sed -n 5p bad.jsonl
expect 0 '"error": "standard input:6: prompt: expected a string, found 3"' sed -n 6p bad.jsonl
long=$'{"text": "c c"}\n{"text": "c c c c"}\n{"text": "c"}'
expect 2 '"error": "standard input:2: ' piped "$long" --model short
expect 2 '2 rows, .* 1 with an error' piped "$long" --model short
expect 2 '"index": 1, "finish": "error"' piped "$bad" --model lm --samples 2

# What stops at once
expect 2 'standard input:2: expected an object with "prompt", "messages", "text" or "ids"' piped $'{"prompt": "ab"}\n{"txt": "a"}' --model lm
expect 2 'standard input:1: expected an object with' piped '[1]' --model lm
expect 2 'standard input:1:3: not valid JSON' piped '{"' --model lm
expect 2 'plain.*: no chat template' piped '{"messages": [{"role": "user", "content": "ab"}]}' --model plain
expect 2 'memory: "lots" is not an amount of memory' "$kedge" generate --model lm --text ab --memory lots
expect 2 'memory: 1.0 KiB of .* free are less than two blocks' piped "$two" --model lm --memory 1KiB
[ -z "$(generate "$two" --model lm --memory 1KiB)" ] || fail "lines are refused for a flag's sake"
expect 2 'none.jsonl: cannot be read: No such file' "$kedge" generate --model lm --input none.jsonl
expect 2 'a score model \(1 labels\) where a language model is expected' "$kedge" generate --model judge --text ab
expect 2 'missing --model' "$kedge" generate --text ab
expect 2 'no model nowhere|nowhere: no such folder' "$kedge" generate --model nowhere --text ab
expect 2 'unknown flag --max-new-token; nearest: --max-new-tokens' "$kedge" generate --model lm --text ab --max-new-token 3
expect 2 'temperature.*above 0' "$kedge" generate --model lm --text ab --temperature 0
expect 2 'samples.*at least 1' "$kedge" generate --model lm --text ab --samples 0
expect 2 '--min-new-tokens: 9 is more than --max-new-tokens 3' "$kedge" generate --model lm --text ab --min-new-tokens 9 --max-new-tokens 3
expect 2 '--stream: requires one --text and one sample' "$kedge" generate --model lm --stream --input mixed_in.jsonl
expect 2 '--stream: requires one --text and one sample' "$kedge" generate --model lm --stream --text ab --samples 2
expect 2 '--stream prints text and --json a line' "$kedge" generate --model lm --stream --text ab --json

# Chat: every answer sees what was said before; /reset forgets it; only answers are on standard output.
chat() { generate "$1" --model lm --chat --use-greedy --max-new-tokens 4 "${@:2}"; }
answer() { generate "{\"messages\": [$1]}" --model lm --use-greedy --max-new-tokens 4 | texts response; }
said() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
first=$(answer "$(said user ab)")
second=$(answer "$(said user ab), $(said assistant "$first"), $(said user 'c b')")
same <(chat $'ab\n\nc b\n') <(printf '%b\n%b\n' "$first" "$second")
same <(chat $'ab\r\n/reset\nab') <(printf '%b\n%b\n' "$first" "$first")
same <(chat $'ab\n/quit\r\nab\n') <(printf '%b\n' "$first")
same <(chat $'c b\n' --system a) <(printf '%b\n' "$(answer "$(said system a), $(said user 'c b')")")
same <(chat '') <(printf '')
expect 2 'plain.*: no chat template' piped $'ab\n' --model plain --chat
cp letters/chat_template.jinja short/
expect 2 'what was said first.*; /reset clears the conversation' piped $'a a a a a a\n' --model short --chat
expect 2 '--chat: reads messages from standard input' "$kedge" generate --model lm --chat --text ab
expect 2 '--chat: an answer is one sample' "$kedge" generate --model lm --chat --samples 2
expect 2 '--system: requires --chat' "$kedge" generate --model lm --text ab --system c

# Input without an end is served as it comes, and a signal leaves whole lines behind.
same <(yes '{"prompt": "ab"}' | "$kedge" generate --model lm --max-new-tokens 3 --max-running 8 2>/dev/null | head -n 100 | wc -l) <(echo 100)
for signal in INT:130 TERM:143; do
  rm -f stopped.jsonl  # its lines say that the program runs
  yes '{"prompt": "ab"}' 2>/dev/null | "$kedge" generate --model lm --max-new-tokens 3 --max-running 8 >stopped.jsonl 2>stopped.log &
  running=$!
  for _ in $(seq 200); do
    [ -s stopped.jsonl ] && break
    sleep 0.05
  done
  kill -"${signal%:*}" "$running"
  wait "$running"
  status=$?
  [ "$status" = "${signal#*:}" ] || fail "SIG${signal%:*}: wanted exit ${signal#*:}, found $status: $(tail -n 3 stopped.log)"
  expect 0 "stopped by SIG${signal%:*}: incomplete completions are left out" cat stopped.log
  grep -vqE '^\{"prompt": "ab", .*"finish": "(end|length)"\}$' stopped.jsonl && fail "SIG${signal%:*} left a torn line"
done

# bench
expect 0 '"case": "engine.decode".*"batch": 2, "prompt_tokens": 3, "new_tokens": 4,.*"tokens_per_s": \{"median".*"decode_tokens_per_s".*"drawn": 8,' \
  "$kedge" bench engine.decode --model lm --batch 2 --prompt-tokens 3 --new-tokens 4 --repeats 1
expect 0 '"drawn": 8,' "$kedge" bench engine.decode --model lm --batch 2 --prompt-tokens 3 --new-tokens 4 --repeats 1 --step-ahead=false
expect 0 '"lora": 2.*"ragged": true, "requests": 5, "max_length": 12' "$kedge" bench engine.decode --shape tiny --ragged --requests 5 --max-length 12 --lora 2 --repeats 1 --dtype bf16
expect 2 'expected either --model or --shape' "$kedge" bench engine.decode
expect 2 'no case "engine.dcode"; nearest: engine.decode; there are engine.decode, server.reward and train.step' "$kedge" bench engine.dcode --shape tiny
expect 2 'expected a case first' "$kedge" bench --shape tiny
expect 0 '^kedge bench engine.decode: ' "$kedge" bench --help

expect 0 '^Usage: kedge generate ' "$kedge" generate --help
[ "$failures" = 0 ] && echo "all as expected"
exit "$((failures > 0))"
