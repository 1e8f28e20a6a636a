#pragma once
// JSON lines from a file or standard input, one at a time, for the tools that pipe.
#include <functional>
#include <string>

#include "kedge/core/json.h"

namespace kedge::cli {

// Calls `use(value, where)` for every line of `input` ("-" is standard input) as it comes; `where` is "FILE:LINE". Blank lines are
// passed over; a line that is no JSON is a UsageError.
void for_each_json_line(const std::string& input, const std::function<void(const Json& value, const std::string& where)>& use);

// With the fewest digits that read back to the same float; NaN and infinities are null.
[[nodiscard]] Json short_number(float value);

// One line on standard output, at once, so that what reads it need not wait.
void print_json_line(const Json& value);

}  // namespace kedge::cli
