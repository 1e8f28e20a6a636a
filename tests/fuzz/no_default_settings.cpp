// In the place of cli/config.cpp, which knows the keys of every command and with them LibTorch.
#include "cli/default_settings.h"

namespace kedge::cli {

std::optional<std::string> default_settings(std::string_view name) {
  return name == "rs" ? std::optional<std::string>("rollouts: {keep: all}\nreward: {sources: {}}\n") : std::nullopt;
}

}  // namespace kedge::cli
