#pragma once
// Are two answers the same? By value where they have one; lists, sets, tuples, intervals, unions, relations and matrices part by part.
#include "kedge/reward/math/math_expression.h"

namespace kedge {

// The same whichever comes first. `tolerance` is that of same_value(). Answers that would take too long to compare are not equal.
[[nodiscard]] bool same_answer(const MathNode& a, const MathNode& b, double tolerance);

}  // namespace kedge
