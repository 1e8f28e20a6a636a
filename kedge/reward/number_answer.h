#pragma once
// The number that a text gives as its answer, as in data sets of maths problems. Independent of rewards.
#include <optional>
#include <string_view>

namespace kedge {

// Where the answer is: the first number after the last "####", the first one inside the last \boxed{...}, the last number of the
// text; any: the first of boxed and hashes whose mark occurs, else the last number.
enum class AnswerPlace { any, last, hashes, boxed };

// Read are 72, -3, 1,234.50, $5, .5, 1e-3, 3/4 and \frac{3}{4}; nothing if no number is found. A minus right after a digit, a letter
// or a bracket is an operation, not a sign. Commas count only before three digits.
[[nodiscard]] std::optional<double> answer_number(std::string_view text, AnswerPlace place = AnswerPlace::any);

}  // namespace kedge
