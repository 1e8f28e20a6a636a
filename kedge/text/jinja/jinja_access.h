#pragma once
// value.name and value[key] by the rules of Jinja's sandbox: attributes before items for a dot, items before attributes for
// brackets, methods that would change a list or a dict refused, and calls. Independent of syntax.
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

// Undefined if there is nothing; a Fault if `value` is itself undefined.
[[nodiscard]] Value get_attribute(const Value& value, std::string_view name);
[[nodiscard]] Value get_item(const Value& value, const Value& key);

// An attribute alone, without falling back to items (the filter `attr`).
[[nodiscard]] Value get_only_attribute(const Value& value, std::string_view name);

[[nodiscard]] bool is_callable(const Value& value);
[[nodiscard]] Value call(const Value& function, const Arguments& arguments);

// A C++ function that templates can call.
[[nodiscard]] Value make_function(std::string type, std::function<Value(const Arguments&)> call);

}  // namespace kedge::jinja
