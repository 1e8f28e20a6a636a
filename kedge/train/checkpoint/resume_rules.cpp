#include "kedge/train/checkpoint/resume_rules.h"

#include <map>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

using FlatConfig = std::map<std::string, std::string>;

void flatten(const Json& value, const std::string& key, FlatConfig& flat) {
  if (!value.is_object()) {
    flat[key] = value.dump();
    return;
  }
  for (const auto& [name, member] : value.as_object(key)) flatten(member, key.empty() ? name : key + "." + name, flat);
}

bool covers(std::string_view rule, std::string_view key) {
  return key.starts_with(rule) && (key.size() == rule.size() || key[rule.size()] == '.');
}

ConfigChange change_of(const std::string& key, std::string before, std::string after, std::span<const ChangeRule> rules) {
  ConfigChange change{key, std::move(before), std::move(after), ChangeKind::free, {}};
  size_t longest = 0;
  for (const ChangeRule& rule : rules) {
    if (!covers(rule.key, key) || rule.key.size() < longest) continue;
    longest = rule.key.size();
    change.kind = rule.kind;
    change.why = rule.why;
  }
  return change;
}

std::string told(const ConfigChange& change) {
  return str(change.key, ": ", change.before.empty() ? "(absent)" : change.before, " -> ", change.after.empty() ? "(absent)" : change.after,
             change.why.empty() ? "" : " (" + change.why + ")");
}

}  // namespace

std::vector<ConfigChange> config_changes(const Json& before, const Json& after, std::span<const ChangeRule> rules) {
  FlatConfig old_keys, new_keys;
  flatten(before, "", old_keys);
  flatten(after, "", new_keys);
  std::vector<ConfigChange> changes;
  for (const auto& [key, value] : old_keys) {
    const auto found = new_keys.find(key);
    const std::string now = found == new_keys.end() ? "" : found->second;
    if (now != value) changes.push_back(change_of(key, value, now, rules));
  }
  for (const auto& [key, value] : new_keys)
    if (!old_keys.contains(key)) changes.push_back(change_of(key, "", value, rules));
  return changes;
}

void accept_changes(const std::vector<ConfigChange>& changes, std::string_view checkpoint) {
  std::string refused;
  for (const ConfigChange& change : changes) {
    if (change.kind == ChangeKind::refused) {
      refused += "\n  " + told(change);
    } else {
      log_info("changed since the checkpoint: ", told(change));
    }
  }
  check(refused.empty(), checkpoint, ": cannot resume with other settings:", refused, "\nRestore them, or start a run in another folder.");
}

}  // namespace kedge
