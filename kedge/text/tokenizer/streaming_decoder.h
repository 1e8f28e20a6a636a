#pragma once
// Ids to text incrementally, for streaming a generation: never half a character. What feed() and flush() return,
// concatenated, is exactly Tokenizer::decode of all the ids.
#include <memory>
#include <string>

#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

class StreamingDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  explicit StreamingDecoder(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::skip);

  // The text that the id definitely adds; often a word, sometimes nothing yet.
  [[nodiscard]] std::string feed(TokenId id);
  // The rest, and a fresh start.
  [[nodiscard]] std::string flush();

 private:
  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  std::unique_ptr<IdDecoder> decoder_;
  std::string held_;  // the start of a character
};

}  // namespace kedge
