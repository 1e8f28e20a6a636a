#pragma once
// A text with {field} placeholders that a row fills in: "Q: {question}\nA: {answer}". Independent of tokenizers.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/data/files/jsonl_file.h"

namespace kedge {

class PromptTemplate {
 public:
  struct Piece {
    std::string text;   // of a placeholder: the blanks before it
    std::string field;  // empty: literal text
  };

  // Backslash escapes (\n, \t, \x1b, \u2028, ...) are decoded. `key` opens errors.
  PromptTemplate(std::string_view text, std::string_view key);

  // Cut at every placeholder; the blanks before one belong to it.
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] bool uses(std::string_view field) const;
  // The template with the row's values as in the file.
  [[nodiscard]] std::string fill(const Row& row) const;

 private:
  std::vector<Piece> pieces_;
};

// Text with its backslash escapes decoded; invalid ones stay as they are.
[[nodiscard]] std::string decode_escapes(std::string_view text);

}  // namespace kedge
