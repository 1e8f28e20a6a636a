#pragma once
// A template's text as a tree. Knows the grammar of Jinja as transformers sets it up (break, continue and generation tags), not
// what names mean.
#include <string_view>

#include "kedge/text/jinja/jinja_ast.h"

namespace kedge::jinja {

// Errors are UsageErrors: "NAME:LINE: ...". Unsupported features of Jinja are named.
[[nodiscard]] Template parse(std::string_view source, std::string_view name);

}  // namespace kedge::jinja
