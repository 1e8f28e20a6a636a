#pragma once
// What SentencePiece does to text before it cuts it: replacements, white space, spaces written as U+2581. Valid UTF-8 in and out.
#include <string>
#include <string_view>

#include "kedge/text/tokenizer/byte_trie.h"
#include "kedge/text/tokenizer/charsmap.h"
#include "kedge/text/tokenizer/sentencepiece_model.h"

namespace kedge {

class SentencePieceText {
 public:
  SentencePieceText(const SentencePieceModel& model, const std::string& origin);

  // Without the dummy space if `dummy_prefix` is false.
  [[nodiscard]] std::string normalize(std::string_view text, bool dummy_prefix = true) const;

  // The user-defined symbols, which no replacement touches; the number is the id.
  [[nodiscard]] const ByteTrie& symbols() const { return symbols_; }

 private:
  struct Step {
    std::string_view text;  // replaces
    size_t length = 0;      // this many bytes
  };
  [[nodiscard]] Step next(std::string_view text) const;

  Charsmap charsmap_;
  ByteTrie symbols_;
  std::string space_;
  bool dummy_prefix_, remove_extra_, space_behind_;
};

}  // namespace kedge
