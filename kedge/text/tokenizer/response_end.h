#pragma once
// Where a generated answer ends and whether it ended by itself: by EOS, by another end token, or by a text.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

struct EndRules {
  std::vector<TokenId> end_ids;        // EOS first
  std::vector<std::string> end_texts;  // strings that are not a single token; slower, because text is decoded after every token
};

// <|endoftext|> means EOS for every tokenizer. Any other string is an end token if it encodes to exactly one id after
// "<extra_id_1>", else an end text (with a warning).
[[nodiscard]] EndRules make_end_rules(const TextEncoder& encoder, std::span<const std::string> end_strings);

// Does the answer end with one of the end texts? Only as much of its end is decoded as they need.
[[nodiscard]] bool ends_by_text(std::span<const TokenId> answer, const EndRules& rules, const TextEncoder& encoder);

struct ResponseEnd {
  int64_t length = 0;   // of prompt and answer, the ending token included
  bool is_end = false;  // ended by itself, and all ids are in the vocabulary
};
struct ResponseLimits {
  int64_t prompt_length = 0;
  int64_t max_length = 0;  // of the answer
  TokenId vocab_size = 0;
};
// `row` is prompt, answer and perhaps padding. Ids outside the vocabulary are clamped to it.
[[nodiscard]] ResponseEnd find_response_end(std::span<TokenId> row, const ResponseLimits& limits, const EndRules& rules,
                                            const TextEncoder& encoder);

}  // namespace kedge
