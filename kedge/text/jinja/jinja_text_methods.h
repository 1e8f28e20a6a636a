#pragma once
// The methods of Python's str.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// Calls self.name(arguments); nothing when str has no such method.
[[nodiscard]] std::optional<Value> call_text_method(const Value& self, std::string_view name, const Arguments& arguments);
[[nodiscard]] bool has_text_method(std::string_view name);

// Shared with filters.
[[nodiscard]] std::string strip_characters(std::string_view text, std::string_view characters, bool left, bool right);
[[nodiscard]] std::string replace_text(std::string_view text, std::string_view old, std::string_view replacement, int64_t count);
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
[[nodiscard]] std::string centered(const Text& text, int64_t width, std::string_view fill);
[[nodiscard]] bool is_lower_text(std::string_view text);
[[nodiscard]] bool is_upper_text(std::string_view text);

}  // namespace kedge::jinja
