#include "kedge/text/tokenizer/response_end.h"

#include <algorithm>

#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr std::string_view kEosText = "<|endoftext|>";
constexpr std::string_view kAnchor = "<extra_id_1>";  // put before an end string, so that the tokenizer's own blank does not apply to it

}  // namespace

EndRules make_end_rules(const TextEncoder& encoder, std::span<const std::string> end_strings) {
  EndRules rules{{encoder.eos_id()}, {}};
  const TokenIds anchor = encoder.encode(kAnchor);
  for (const std::string& end : end_strings) {
    if (end == kEosText || end.empty()) continue;
    const TokenIds ids = encoder.encode(std::string(kAnchor) + end);
    // A tokenizer may drop unknown text: the extra id must also decode to the string.
    const bool is_one_more = ids.size() == anchor.size() + 1 && std::equal(anchor.begin(), anchor.end(), ids.begin());
    if (is_one_more && encoder.decode(ids).ends_with(end)) {
      if (std::find(rules.end_ids.begin(), rules.end_ids.end(), ids.back()) == rules.end_ids.end()) rules.end_ids.push_back(ids.back());
    } else {
      log_warn_of_job("end string \"", end,
                      "\" is not a single token of this tokenizer: answers are searched for its text, which is slow, and a token that "
                      "continues past its end is missed");
      rules.end_texts.push_back(end);
    }
  }
  return rules;
}

bool ends_by_text(std::span<const TokenId> answer, const EndRules& rules, const TextEncoder& encoder) {
  if (rules.end_texts.empty()) return false;
  // A token decodes to at least one byte, except for a few empty ones; and a decoder may take a blank off the first one.
  constexpr size_t kMore = 16;
  size_t longest = 0;
  for (const std::string& end : rules.end_texts) longest = std::max(longest, end.size());
  const std::string text = encoder.decode(answer.last(std::min(answer.size(), longest + kMore)));
  return std::any_of(rules.end_texts.begin(), rules.end_texts.end(), [&](const std::string& end) { return text.ends_with(end); });
}

ResponseEnd find_response_end(std::span<TokenId> row, const ResponseLimits& limits, const EndRules& rules, const TextEncoder& encoder) {
  bool in_vocabulary = true;
  for (TokenId& id : row) {
    const TokenId clamped = std::clamp(id, 0, limits.vocab_size - 1);
    if (clamped != id) in_vocabulary = false;
    id = clamped;
  }
  const int64_t limit = std::min(static_cast<int64_t>(row.size()), limits.prompt_length + limits.max_length);
  for (int64_t at = limits.prompt_length; at < limit; ++at) {
    const bool by_token = std::find(rules.end_ids.begin(), rules.end_ids.end(), row[static_cast<size_t>(at)]) != rules.end_ids.end();
    const auto answer = row.subspan(static_cast<size_t>(limits.prompt_length), static_cast<size_t>(at + 1 - limits.prompt_length));
    if (by_token || ends_by_text(answer, rules, encoder)) return {at + 1, in_vocabulary};
  }
  return {limit, false};
}

}  // namespace kedge
