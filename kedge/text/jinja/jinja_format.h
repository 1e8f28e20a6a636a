#pragma once
// Python's two ways to format: text % values, and text.format(...). Independent of where values come from.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// format % values: a tuple fills the places one by one, anything else is one value; %(name)s reads a dict.
[[nodiscard]] Value printf_format(const Value& format, const Value& values);

// format.format(positional..., named...) ; format_map when `mapping` is given.
[[nodiscard]] Value brace_format(const Value& format, const Arguments& arguments, const Value* mapping = nullptr);

}  // namespace kedge::jinja
