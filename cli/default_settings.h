#pragma once
// What a command's configuration is before anybody sets a key.
#include <optional>
#include <string>
#include <string_view>

namespace kedge::cli {

// As YAML with every key, by the name that kedge config knows it by ("reinforce", "serve_critic"); none for a name that it does not know.
// In config.cpp.
[[nodiscard]] std::optional<std::string> default_settings(std::string_view name);

}  // namespace kedge::cli
