#pragma once
// Small tokenizers made by hand: a tokenizer.json in a few lines, and SentencePiece models byte by byte.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/json_tokenizer.h"

namespace kedge::testing {

inline Json parse(std::string_view text) { return Json::parse(text, "test"); }

// A JsonTokenizer from its text; errors name "toy.json".
inline JsonTokenizer toy(std::string_view text) { return JsonTokenizer(parse(text), "toy.json"); }

// A byte-level BPE with the tokens a b c ab abc space-a and <|end|>, which is special.
inline JsonTokenizer toy_bpe() {
  return toy(R"({
    "added_tokens": [{"id": 7, "content": "<|end|>", "special": true, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "abc": 5, "Ġa": 6}, "merges": [["a", "b"], ["ab", "c"], ["Ġ", "a"]]}
  })");
}

// Fields of a protocol buffer.
inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  return out += static_cast<char>(value);
}
inline std::string number_field(uint64_t field, uint64_t value) { return varint(field << 3U) + varint(value); }
inline std::string text_field(uint64_t field, std::string_view value) {
  return varint(field << 3U | 2U) + varint(value.size()) + std::string(value);
}
inline std::string float_field(uint64_t field, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(field << 3U | 5U) + bytes;
}

// A piece of a SentencePiece model; types as in sentencepiece_model.h.
inline std::string piece(std::string_view text, float score, uint64_t type = 1) {
  return text_field(1, text_field(1, text) + float_field(2, score) + number_field(3, type));
}

}  // namespace kedge::testing
