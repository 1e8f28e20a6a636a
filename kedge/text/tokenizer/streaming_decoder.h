#pragma once
// Ids to text as they come, for showing a generation while it runs: never half a character. What feed() and flush() return,
// put together, is exactly Tokenizer::decode of all the ids.
#include <memory>
#include <string>

#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

class StreamingDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  explicit StreamingDecoder(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::skip);

  // What the id adds for sure; often a word, sometimes nothing yet.
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
