#pragma once
// Assigns every variable of a template its slot, by the scoping rules of Jinja's compiler: a loop, a macro and a set
// block see what is around them, and what they set stays inside. Also rejects filters and tests that do not exist.
#include <string_view>

#include "kedge/text/jinja/jinja_ast.h"

namespace kedge::jinja {

// `name` is the template's, for errors: "NAME:LINE: No filter named 'x'.".
void resolve_names(Template& parsed, std::string_view name);

}  // namespace kedge::jinja
