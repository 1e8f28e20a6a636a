#pragma once
// The number that a text gives as its answer, as in data sets of maths problems. Independent of rewards.
#include <optional>
#include <string_view>

#include "kedge/reward/answer_place.h"

namespace kedge {

// Read are 72, -3, 1,234.50, $5, .5, 1e-3, 3/4 and \frac{3}{4}; nothing if no number is found. A minus right after a digit, a letter
// or a bracket is an operation, not a sign. Commas count only before three digits.
[[nodiscard]] std::optional<double> answer_number(std::string_view text, AnswerPlace place = AnswerPlace::any);

// The first and the last number, as they are written.
[[nodiscard]] std::optional<std::string_view> first_number_text(std::string_view text);
[[nodiscard]] std::optional<std::string_view> last_number_text(std::string_view text);

}  // namespace kedge
