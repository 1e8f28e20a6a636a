#pragma once
// SentencePiece's compiled table of character replacements ("precompiled_charsmap"): a double-array trie of the patterns,
// and the replacement texts. No table can lead outside its own bytes: every step is checked.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // The bytes as in a tokenizer.model. `where` opens errors.
  Charsmap(std::string_view blob, const std::string& where);
  // The same in a tokenizer.json.
  static Charsmap from_base64(std::string_view text, const std::string& where);

  [[nodiscard]] bool empty() const { return units_.empty(); }

  struct Found {
    size_t length = 0;  // of the text to replace; 0: nothing to replace here
    std::string_view replacement;
  };
  // The longest entry that `text` starts with.
  [[nodiscard]] Found longest(std::string_view text) const;

  // As `tokenizers` applies it: to complete graphemes of up to five bytes, else to the characters of a grapheme one by one.
  [[nodiscard]] std::string replace_graphemes(std::string_view text) const;

 private:
  // The shortest entry that `text` starts with; `tokenizers` replaces all of the text by it.
  [[nodiscard]] Found shortest(std::string_view text) const;
  // Calls visit(length, offset into texts_) for every entry that `text` starts with, short ones first.
  template <typename Visit>
  void each_prefix(std::string_view text, Visit&& visit) const;
  [[nodiscard]] std::string_view text_at(size_t offset) const;

  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a NUL
};

}  // namespace kedge
