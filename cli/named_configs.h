#pragma once
// The configurations that commands take, by name: for kedge config and shell completion.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/config/config_schema.h"

namespace kedge::cli {

struct NamedConfig {
  std::string_view name, about;
  Section (*section)();  // at its defaults
};

[[nodiscard]] std::span<const NamedConfig> named_configs();
[[nodiscard]] std::vector<std::string> config_names();

// Null if there is none of that name.
[[nodiscard]] const NamedConfig* find_config(std::string_view name);

}  // namespace kedge::cli
