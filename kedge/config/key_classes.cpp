#include "kedge/config/key_classes.h"

#include <algorithm>
#include <utility>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// Classes everything that is under one node.
class Classifier {
 public:
  explicit Classifier(PathAliases aliases) : aliases_(std::move(aliases)) {}

  void section(const Section& section, const ConfigNode& node, const std::string& path) {
    for (const auto& [name, value] : node.members) member(section, name, value, path);
  }

  std::vector<ClassedKey> take() { return std::move(keys_); }

 private:
  void member(const Section& section, const std::string& name, const ConfigNode& value, const std::string& path) {
    const std::string key = join_path(path, name);
    const auto named = [&](const auto& entry) { return entry.name == name; };
    if (const auto alias = alias_of(key); !alias.empty()) return leaves(value, key, KeyClass::converted, "read as " + alias);
    if (const auto field = std::find_if(section.fields.begin(), section.fields.end(), named); field != section.fields.end()) {
      if (field->section && value.is_map()) return this->section(field->section(), value, key);
      const auto note = std::find_if(section.converted.begin(), section.converted.end(), named);
      if (note != section.converted.end() && std::find(note->accepted.begin(), note->accepted.end(), value.text) == note->accepted.end())
        return add(key, value, KeyClass::converted, note->why);
      return add(key, value, KeyClass::honoured, "");
    }
    if (const auto note = std::find_if(section.ignored.begin(), section.ignored.end(), named); note != section.ignored.end())
      return leaves(value, key, KeyClass::ignored, note->why);
    if (const auto note = std::find_if(section.refused.begin(), section.refused.end(), named); note != section.refused.end())
      return leaves(value, key, KeyClass::refused, (note->accepted.empty() ? "" : "unless " + note->accepted.front() + ": ") + note->why);
    leaves(value, key, KeyClass::unknown, "");
  }

  void leaves(const ConfigNode& node, const std::string& key, KeyClass kind, const std::string& note) {
    if (const auto alias = alias_of(key); !alias.empty() && kind != KeyClass::converted)
      return leaves(node, key, KeyClass::converted, "read as " + alias);
    if (!node.is_map() || node.members.empty()) return add(key, node, kind, note);
    for (const auto& [name, value] : node.members) leaves(value, join_path(key, name), kind, note);
  }

  void add(const std::string& key, const ConfigNode& value, KeyClass kind, const std::string& note) {
    keys_.push_back({key, value.shown(), kind, note});
  }

  [[nodiscard]] std::string alias_of(const std::string& key) const {
    const auto found = std::find_if(aliases_.begin(), aliases_.end(), [&](const auto& alias) { return alias.first == key; });
    return found == aliases_.end() ? "" : found->second;
  }

  PathAliases aliases_;
  std::vector<ClassedKey> keys_;
};

}  // namespace

std::string_view name_of(KeyClass kind) {
  switch (kind) {
    case KeyClass::honoured:
      return "honoured";
    case KeyClass::converted:
      return "converted";
    case KeyClass::ignored:
      return "ignored";
    case KeyClass::refused:
      return "refused";
    case KeyClass::unknown:
      return "unknown";
  }
  return "";
}

std::vector<ClassedKey> classify_keys(const Section& section, const ConfigText& text) {
  ConfigNode user = parse_yaml(text.yaml, text.origin);
  check(user.is_map(), user.where.prefix(), "needs keys and values at the top, found ", user.shown());
  user.erase("defaults");
  Classifier classifier(all_aliases(section));
  classifier.section(section, user, "");
  return classifier.take();
}

}  // namespace kedge
