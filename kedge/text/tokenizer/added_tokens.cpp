#include "kedge/text/tokenizer/added_tokens.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

size_t last_char_start(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && char_table().is_word(utf8_decode(text.substr(last_char_start(text))));
}

bool starts_with_word(std::string_view text) { return !text.empty() && char_table().is_word(utf8_decode(text)); }

size_t start_of_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const size_t last = last_char_start(text);
    if (!char_table().is_space(utf8_decode(text.substr(last)))) break;
    text = text.substr(0, last);
  }
  return text.size();
}

size_t end_of_leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && char_table().is_space(utf8_decode(text.substr(at)))) at += utf8_length(text.substr(at));
  return at;
}

}  // namespace

AddedToken AddedToken::from_json(const Json& json, const std::string& where) {
  AddedToken token;
  token.content = json.at("content", where).as_text(where + ".content");
  const auto flag = [&](const char* key, bool& value) {
    if (const Json* found = json.find(key)) value = found->as_bool(str(where, ".", key));
  };
  flag("single_word", token.single_word);
  flag("lstrip", token.lstrip);
  flag("rstrip", token.rstrip);
  flag("special", token.special);
  token.normalized = !token.special;
  flag("normalized", token.normalized);
  return token;
}

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Vocab& vocab, const Normalizer& normalizer) {
  const auto vocab_size = static_cast<TokenId>(vocab.num_tokens());
  TokenId next_id = std::max(vocab_size, end_id());
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    std::optional<TokenId> id = find(token.content);
    if (!id) id = vocab.find(token.content);
    if (!id) id = next_id++;
    Entry entry{token, ""};
    if (token.normalized) entry.normalized_form = normalizer.apply(token.content).text;
    // The id may have belonged to another token, where the vocabulary has holes.
    if (const auto old = tokens_.find(*id); old != tokens_.end()) ids_.erase(old->second.token.content);
    tokens_[*id] = std::move(entry);
    ids_[token.content] = *id;
  }
  std::vector<std::pair<std::string_view, int32_t>> raw, normalized;
  for (const auto& [id, entry] : tokens_) {
    if (entry.token.normalized) {
      normalized.emplace_back(entry.normalized_form, id);
    } else {
      raw.emplace_back(entry.token.content, id);
    }
  }
  raw_trie_ = ByteTrie(std::move(raw));
  normalized_trie_ = ByteTrie(std::move(normalized));
}

bool AddedTokens::is_special(TokenId id) const {
  const auto found = tokens_.find(id);
  return found != tokens_.end() && found->second.token.special;
}

std::optional<TokenId> AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view AddedTokens::decoded_form(TokenId id) const {
  const Entry& entry = tokens_.at(id);
  return entry.token.normalized ? entry.normalized_form : entry.token.content;
}

void AddedTokens::add_to(Fingerprint& fingerprint) const {
  for (const auto& [id, entry] : tokens_) {
    fingerprint.add(int64_t{id});
    fingerprint.add(entry.token.content);
    fingerprint.add(int64_t{entry.token.special});
  }
}

void AddedTokens::split(std::string_view text, Pass pass, bool match_special, const std::function<void(const Stretch&)>& found) const {
  const ByteTrie& trie = pass == Pass::raw ? raw_trie_ : normalized_trie_;
  size_t done = 0;
  if (!trie.empty()) {
    for (size_t at = 0; at < text.size();) {
      const ByteTrie::Match match = trie.longest(text.substr(at));
      if (match.length == 0) {
        ++at;
        continue;
      }
      size_t start = at;
      size_t end = at + match.length;
      at = end;
      const AddedToken& token = tokens_.at(match.value).token;
      if (!match_special && token.special) continue;
      if (token.single_word && (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(end)))) continue;
      if (token.lstrip) start = std::max(start_of_trailing_space(text.substr(0, start)), done);
      if (token.rstrip) end += end_of_leading_space(text.substr(end));
      if (done < start) found({done, start, std::nullopt});
      found({start, end, match.value});
      done = end;
    }
  }
  if (done < text.size()) found({done, text.size(), std::nullopt});
}

}  // namespace kedge
