#include "kedge/text/tokenizer/response_text.h"

#include <algorithm>
#include <utility>

namespace kedge {
namespace {

// A model may have more ids than its tokenizer, to round the size of its matrices. They are never sampled, but may occur in a prompt of
// ids, and decode to nothing there.
TokenIds known_ids(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  TokenIds known;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(known), [&](TokenId id) { return id < tokenizer.vocab_size(); });
  return known;
}

}  // namespace

ResponseText::ResponseText(const Tokenizer& tokenizer, std::span<const std::string> end_strings)
    : tokenizer_(tokenizer), encoder_(encoder_of(tokenizer)), num_eos_(tokenizer.special().stop.size()) {
  if (encoder_.eos || !end_strings.empty()) rules_ = make_end_rules(encoder_, end_strings);
  TokenIds ends = tokenizer.special().stop;
  for (const TokenId id : rules_.end_ids)
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  rules_.end_ids = std::move(ends);
}

std::function<bool(std::span<const TokenId> response)> ResponseText::ends() const {
  if (rules_.end_texts.empty()) return {};
  return [this](std::span<const TokenId> response) { return ends_by_text(response, rules_, encoder_); };
}

std::string ResponseText::text(std::span<const TokenId> prompt, std::span<const TokenId> response) const {
  ResponseStream stream(*this, prompt);
  std::string text;
  for (const TokenId id : response) text += stream.feed(id);
  return text + stream.flush();
}

std::string ResponseText::judged_text(std::span<const TokenId> prompt, std::span<const TokenId> response, bool has_ended) const {
  const auto is_end = [&](TokenId id) { return std::find(rules_.end_ids.begin(), rules_.end_ids.end(), id) != rules_.end_ids.end(); };
  const bool ended_by_id = has_ended && !response.empty() && is_end(response.back());
  const auto inside = ended_by_id ? response.first(response.size() - 1) : response;
  ResponseStream stream(*this, prompt);
  std::string text;
  for (const TokenId id : inside) {
    text += stream.feed(id);
    if (tokenizer_.is_special(id) || is_end(id)) text += tokenizer_.token_of(id);
  }
  text += stream.flush();
  if (!has_ended || ended_by_id) return text;
  for (const std::string& end : rules_.end_texts)
    if (text.ends_with(end)) return text.substr(0, text.size() - end.size());
  return text;
}

ResponseStream::ResponseStream(const ResponseText& responses, std::span<const TokenId> prompt)
    : tokenizer_(responses.tokenizer_), decoder_(tokenizer_) {
  const TokenIds known = known_ids(tokenizer_, prompt);
  prompt_bytes_ = tokenizer_.decode(known, SpecialTokens::skip).size();
  for (const TokenId id : known) static_cast<void>(behind_prompt(decoder_.feed(id)));
}

std::string ResponseStream::feed(TokenId id) {
  const auto& stop = tokenizer_.special().stop;  // not all folders mark them as special tokens
  if (std::find(stop.begin(), stop.end(), id) != stop.end()) return {};
  return behind_prompt(decoder_.feed(id));
}

std::string ResponseStream::behind_prompt(std::string text) {
  const size_t skipped = std::min(prompt_bytes_, text.size());
  prompt_bytes_ -= skipped;
  return text.substr(skipped);
}

}  // namespace kedge
