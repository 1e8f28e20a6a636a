#include "kedge/inspect/settings_diff.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace kedge {
namespace {

void add_flat(FlatSettings& flat, const std::string& key, const Json& value) {
  if (!value.is_object() || value.as_object(key).empty()) {
    flat.emplace_back(key, value.is_text() ? value.as_text(key) : value.dump());
    return;
  }
  for (const auto& [name, member] : value.as_object(key)) add_flat(flat, key.empty() ? name : key + "." + name, member);
}

}  // namespace

FlatSettings flat_settings(const Json& settings) {
  FlatSettings flat;
  if (settings.is_object() && settings.as_object("").empty()) return flat;
  add_flat(flat, "", settings);
  return flat;
}

std::vector<SettingRow> differing_settings(std::span<const FlatSettings> all) {
  std::vector<SettingRow> rows;
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < all.size(); ++i)
    for (const auto& [key, value] : all[i]) {
      const auto [place, is_new] = places.try_emplace(key, rows.size());
      if (is_new) rows.push_back({key, std::vector<std::optional<std::string>>(all.size())});
      rows[place->second].values[i] = value;
    }
  const auto says = [](const std::optional<std::string>& value) { return value && *value != "null" && *value != "{}"; };
  // An empty map, or none, compared with one that has keys: its keys show the difference.
  std::set<std::string> sections;
  for (const SettingRow& row : rows)
    for (size_t dot = row.key.find('.'); dot != std::string::npos; dot = row.key.find('.', dot + 1))
      sections.insert(row.key.substr(0, dot));
  std::erase_if(rows, [&](const SettingRow& row) {
    return sections.count(row.key) > 0 || std::none_of(row.values.begin(), row.values.end(), says) ||
           std::all_of(row.values.begin(), row.values.end(), [&](const auto& value) { return value == row.values.front(); });
  });
  return rows;
}

}  // namespace kedge
