#pragma once
// Python's int(), float() and round().
#include <optional>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// Nothing where Python raises ValueError.
[[nodiscard]] std::optional<int64_t> parse_integer(std::string_view text, int64_t base = 10);
[[nodiscard]] std::optional<double> parse_real(std::string_view text);

// round(value, places): the nearest, ties to even; an int stays an int.
[[nodiscard]] Value rounded(const Value& value, int64_t places);

}  // namespace kedge::jinja
