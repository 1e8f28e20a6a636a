#pragma once
// One-line rendering for tests.
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja.h"

namespace kedge::testing {

// `variables` is JSON text.
inline std::string rendered(std::string_view text, std::string_view variables = "{}") {
  return JinjaTemplate::parse(text, "t").render(Json::parse(variables));
}

}  // namespace kedge::testing
