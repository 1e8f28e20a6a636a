#pragma once
// Jinja's filters: what follows |. `tojson` is transformers' replacement.
#include <map>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

[[nodiscard]] bool has_filter(std::string_view name);
// A Fault for an unknown name.
[[nodiscard]] Value call_filter(std::string_view name, const Value& value, const Arguments& arguments);

using Filter = Value (*)(const Value& value, const Arguments& arguments);
using Filters = std::map<std::string_view, Filter>;

}  // namespace kedge::jinja
