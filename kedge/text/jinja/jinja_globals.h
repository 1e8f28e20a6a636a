#pragma once
// The functions every template can call: range, dict, namespace, cycler, joiner, and those transformers adds.
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

using Variables = std::unordered_map<std::string, Value>;

// `spaces` owns the namespaces that templates create, and must outlive the functions. `now` is the time for strftime_now; without
// it, the time of the call.
void add_globals(Variables& variables, std::deque<Namespace>& spaces, const std::optional<std::tm>& now);

// Sets an attribute; a Fault for a name that transformers rejects.
void set_attribute(Namespace& space, std::string_view name, Value value);

}  // namespace kedge::jinja
