#pragma once
// The defaults of a command's configuration.
#include <optional>
#include <string>
#include <string_view>

namespace kedge::cli {

// As YAML with every key, by its name in kedge config ("reinforce", "serve_critic"); none for an unknown name.
// In config.cpp.
[[nodiscard]] std::optional<std::string> default_settings(std::string_view name);

}  // namespace kedge::cli
