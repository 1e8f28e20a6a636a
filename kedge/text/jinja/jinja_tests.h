#pragma once
// Jinja's tests: what follows `is`.
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

[[nodiscard]] bool has_test(std::string_view name);
// A Fault for an unknown name.
[[nodiscard]] bool call_test(std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace kedge::jinja
