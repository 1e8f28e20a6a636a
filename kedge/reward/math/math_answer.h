#pragma once
// Final answers of maths problems: finds the answer in a response and compares it with the right one, by value. Independent of rewards.
#include <optional>
#include <string>
#include <string_view>

#include "kedge/reward/answer_place.h"
#include "kedge/reward/math/math_expression.h"

namespace kedge {

struct MathAnswer {
  std::string text;
  std::optional<char> choice = {};  // B where its words open with "(B)", "B." or "option B": of a problem with choices that is the answer
};

// The answer of a response. boxed: the last \boxed{...}; hashes: the text after the last "####"; last: the last formula or number,
// whichever comes later; any: the first of boxed, hashes and the words after "the answer is" that occurs, else the last. Nothing if there
// is none.
[[nodiscard]] std::optional<MathAnswer> math_answer(std::string_view response, AnswerPlace place = AnswerPlace::any);

// The right answer. May be compared with many responses, from several threads.
class RightMathAnswer {
 public:
  // A bare answer, "\frac{1}{2}", or a solution that ends with one ("... #### 72", "... \boxed{72}"). Nothing if it cannot be read.
  [[nodiscard]] static std::optional<RightMathAnswer> of(std::string_view truth);

  // Is this answer of a response the same? `tolerance`: see same_value().
  [[nodiscard]] bool is(const MathAnswer& answer, double tolerance = 1e-6) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  MathNode node_;
};

}  // namespace kedge
