#pragma once
// LaTeX or plain text of a formula as tokens. What only changes the look (\left, \, \displaystyle, $) is gone; characters such as × and π
// are the commands they stand for. Knows no grammar.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/reward/math/rational.h"

namespace kedge {

struct MathToken {
  enum class Kind {
    number,   // 12, 1,234.50, 1e-3, 0.\overline{3}
    word,     // letters: x, cm, Evelyn
    command,  // \frac is "frac"; function names and Greek letters without a backslash too
    text,     // the content of \text{...} and its relatives
    sign,     // one character, or "\{", "\}", "\\"
  };
  Kind kind = Kind::sign;
  std::string text = {};
  bool is_spaced = false;  // white space came before it
  // Of a number:
  std::optional<Rational> exact = {};
  double approximate = 0;
  bool has_point = false;

  [[nodiscard]] bool is_sign(std::string_view wanted) const { return kind == Kind::sign && text == wanted; }
  [[nodiscard]] bool is_command(std::string_view wanted) const { return kind == Kind::command && text == wanted; }
  [[nodiscard]] bool is_word(std::string_view wanted) const { return kind == Kind::word && text == wanted; }
};

inline constexpr size_t kMaxMathBytes = 4000;  // of one answer; more is not read

// Nothing if the text is too long, or has a brace that is not closed. Never more tokens than bytes.
[[nodiscard]] std::optional<std::vector<MathToken>> math_tokens(std::string_view text);

}  // namespace kedge
