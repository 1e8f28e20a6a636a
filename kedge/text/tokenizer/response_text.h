#pragma once
// What drawn ids say: which of them end a response, and its text, whole or as it comes. The text is what stands behind the prompt's, so
// that the two put together are one text, also where a tokenizer gives the first word no blank.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kedge/text/tokenizer/response_end.h"
#include "kedge/text/tokenizer/streaming_decoder.h"

namespace kedge {

// `tokenizer` must outlive it, and it the functions and streams that it gives.
class ResponseText {
 public:
  // The tokenizer's own end tokens, and the user's strings.
  ResponseText(const Tokenizer& tokenizer, std::span<const std::string> end_strings);

  [[nodiscard]] const EndRules& rules() const { return rules_; }
  [[nodiscard]] const TextEncoder& encoder() const { return encoder_; }
  [[nodiscard]] const std::vector<TokenId>& end_ids() const { return rules_.end_ids; }  // EOS first
  [[nodiscard]] TokenId vocab_size() const { return tokenizer_.vocab_size(); }
  // Is the response at an end that is no single id? Empty where there are none to look for.
  [[nodiscard]] std::function<bool(std::span<const TokenId> response)> ends() const;
  // Without special tokens; strings that the user named as ends stay.
  [[nodiscard]] std::string text(std::span<const TokenId> prompt, std::span<const TokenId> response) const;
  // For whoever judges a response: a special token inside it is spelt out, so that such a response is not taken for another one; at the
  // end, those that end it are left out.
  [[nodiscard]] std::string judged_text(std::span<const TokenId> prompt, std::span<const TokenId> response, bool has_ended) const;
  // As text(), of a response that has ended, without the token or the string that ended it.
  [[nodiscard]] std::string ended_text(std::span<const TokenId> prompt, std::span<const TokenId> response) const;

 private:
  friend class ResponseStream;

  const Tokenizer& tokenizer_;
  TextEncoder encoder_;
  EndRules rules_;
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
  size_t prompt_bytes_ = 0;  // of the prompt's own text that are still to come
};

}  // namespace kedge
