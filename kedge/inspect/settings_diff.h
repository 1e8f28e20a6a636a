#pragma once
// Settings of several runs, key by key, and where they differ. Independent of files.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

// A tree as dotted keys with their values as text, in the order of the tree. Lists, empty maps and null are values.
using FlatSettings = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] FlatSettings flat_settings(const Json& settings);

// A key whose values differ, and the value of each; none: the key is missing.
struct SettingRow {
  std::string key;
  std::vector<std::optional<std::string>> values = {};
};
// In the order of the first one that has the key. A key that some lack and the others leave empty is not a difference.
[[nodiscard]] std::vector<SettingRow> differing_settings(std::span<const FlatSettings> all);

}  // namespace kedge
