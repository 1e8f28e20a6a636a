#pragma once
// The right answer in a prompt's row, whatever the layout of the data. Knows field names, not what an answer is.
#include <array>
#include <string>
#include <string_view>

#include "kedge/core/json.h"

namespace kedge {

// Where a row has its answer if no field is named: kedge's and GSM8K's, verl's, then those of other data. A point enters an object.
inline constexpr std::array<std::string_view, 4> kUsualAnswerFields = {"answer", "reward_model.ground_truth", "ground_truth", "solution"};

// The field of that name, or the one that a path such as reward_model.ground_truth leads to; null if there is none.
[[nodiscard]] const Json* find_field(const Json& row, std::string_view path);

// `field`, or if it is empty the first of the usual ones that the row has and that is not null; "answer" if there is none.
[[nodiscard]] std::string_view answer_field(const Json& row, std::string_view field);

// What is there; null if there is nothing.
[[nodiscard]] const Json* find_answer(const Json& row, std::string_view field);

}  // namespace kedge
