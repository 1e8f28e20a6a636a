#pragma once
// Sampled ids as text: which of them end a response, and its text, complete or streamed. The text is what follows the prompt's, so
// that the two concatenated are one text, even if a tokenizer gives the first word no blank.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kedge/text/tokenizer/response_end.h"
#include "kedge/text/tokenizer/streaming_decoder.h"

namespace kedge {

// `tokenizer` must outlive it, and it must outlive its functions and streams.
class ResponseText {
 public:
  // The tokenizer's own end tokens, and the user's strings.
  ResponseText(const Tokenizer& tokenizer, std::span<const std::string> end_strings);

  [[nodiscard]] const EndRules& rules() const { return rules_; }
  [[nodiscard]] const TextEncoder& encoder() const { return encoder_; }
  [[nodiscard]] const std::vector<TokenId>& end_ids() const { return rules_.end_ids; }  // EOS first, then the folder's others
  [[nodiscard]] size_t num_eos() const { return num_eos_; }                             // how many of them are the folder's
  [[nodiscard]] TokenId vocab_size() const { return tokenizer_.vocab_size(); }
  // Has the response ended with a text that is not a single id? Empty if there are none.
  [[nodiscard]] std::function<bool(std::span<const TokenId> response)> ends() const;
  // Without special tokens; the user's end strings stay.
  [[nodiscard]] std::string text(std::span<const TokenId> prompt, std::span<const TokenId> response) const;
  // For reward models: a special token inside the response is spelt out, so that it is not mistaken for another one; at the
  // end, those that end it are left out.
  [[nodiscard]] std::string judged_text(std::span<const TokenId> prompt, std::span<const TokenId> response, bool has_ended) const;

 private:
  friend class ResponseStream;

  const Tokenizer& tokenizer_;
  TextEncoder encoder_;
  EndRules rules_;
  size_t num_eos_;
};

// The same text in pieces, never half a character.
class ResponseStream {
 public:
  ResponseStream(const ResponseText& responses, std::span<const TokenId> prompt);

  [[nodiscard]] std::string feed(TokenId id);
  [[nodiscard]] std::string flush() { return behind_prompt(decoder_.flush()); }

 private:
  [[nodiscard]] std::string behind_prompt(std::string text);

  const Tokenizer& tokenizer_;
  StreamingDecoder decoder_;
  size_t prompt_bytes_ = 0;  // of the prompt's own text that are still pending
};

}  // namespace kedge
