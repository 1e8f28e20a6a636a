#pragma once
// Names close to a mistyped one.
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

// Single-character insertions, deletions, replacements and swaps of neighbours between two names.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

// At most `limit` candidates that resemble `name`, best first; dotted names also match by their last part. May be empty.
[[nodiscard]] std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t limit = 3);

// "; nearest: a, b", or nothing if nothing is near.
[[nodiscard]] std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace kedge
