#pragma once
// Tokens that are found in text as a whole, before any model sees it: special tokens, and others added to a vocabulary.
// Matching is that of `tokenizers`: leftmost, then longest; first those for raw text, then those for normalised text.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/fingerprint.h"
#include "kedge/core/json.h"
#include "kedge/text/tokenizer/byte_trie.h"
#include "kedge/text/tokenizer/normalizer.h"
#include "kedge/text/tokenizer/vocab.h"

namespace kedge {

struct AddedToken {
  std::string content;
  bool single_word = false;  // only between characters that are not of a word
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // is matched in normalised text, in its own normalised spelling
  bool special = false;

  // The fields of an entry of added_tokens or added_tokens_decoder. If `normalized` is not given, special tokens are not.
  static AddedToken from_json(const Json& json, const std::string& where);
  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

class AddedTokens {
 public:
  // Ids as `tokenizers` gives them: a token the vocabulary has keeps that id, others follow. A token that
  // already exists gets the new properties. `normalizer` and `vocab` are used during the call only.
  void add(const std::vector<AddedToken>& tokens, const Vocab& vocab, const Normalizer& normalizer);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  [[nodiscard]] bool has(TokenId id) const { return tokens_.contains(id); }
  [[nodiscard]] bool is_special(TokenId id) const;
  [[nodiscard]] std::optional<TokenId> find(std::string_view content) const;
  [[nodiscard]] const AddedToken& token(TokenId id) const { return tokens_.at(id).token; }
  // As a decoder gets it: in its normalised spelling if it has one.
  [[nodiscard]] std::string_view decoded_form(TokenId id) const;
  [[nodiscard]] TokenId end_id() const { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }
  void add_to(Fingerprint& fingerprint) const;

  // A part of a text: an added token with its id, or text between them.
  struct Stretch {
    size_t start = 0;
    size_t end = 0;
    std::optional<TokenId> id;
  };
  enum class Pass { raw, normalized };
  // Covers the text, in order. Special tokens are not matched if `match_special` is false.
  void split(std::string_view text, Pass pass, bool match_special, const std::function<void(const Stretch&)>& found) const;

 private:
  struct Entry {
    AddedToken token;
    std::string normalized_form;  // empty: the content itself
  };

  std::map<TokenId, Entry> tokens_;
  std::map<std::string, TokenId, std::less<>> ids_;
  ByteTrie raw_trie_;
  ByteTrie normalized_trie_;
};

}  // namespace kedge
