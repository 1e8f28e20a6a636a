#pragma once
// A replayed step as a table of at most 80 columns, and as JSON.
#include <string>

#include "kedge/core/json.h"
#include "kedge/rollout/step_comparison.h"

namespace kedge::cli {

// A line for every quantity, and below those that differ where the largest difference is. `all`: also those that match.
[[nodiscard]] std::string comparison_table(const StepComparison& comparison, bool all);

// A text in lines of at most 80 columns, the second and later ones two columns in.
[[nodiscard]] std::string paragraph(const std::string& text);

[[nodiscard]] Json comparison_json(const StepComparison& comparison);

}  // namespace kedge::cli
