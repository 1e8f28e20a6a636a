#include "kedge/config/config.h"

#include <algorithm>

#include "kedge/config/config_overrides.h"
#include "kedge/config/config_resolve.h"
#include "kedge/config/nearest.h"
#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

// Calls `visit(section, path)` for the section and every section inside it.
template <typename Visit>
void for_each_section(const Section& section, const std::string& path, const Visit& visit) {
  visit(section, path);
  for (const Field& field : section.fields)
    if (field.section) for_each_section(field.section(), join_path(path, field.name), visit);
}

// Keys that may only have one value need not be written, but can still be referred to.
PathAliases implied_values(const Section& section) {
  PathAliases implied;
  for_each_section(section, "", [&](const Section& inner, const std::string& path) {
    for (const Section::Note& note : inner.refused)
      if (!note.accepted.empty()) implied.emplace_back(join_path(path, note.name), note.accepted.front());
  });
  return implied;
}

// `key`, or the key of which it or its section is an alias.
std::string without_alias(const std::string& key, const PathAliases& aliases) {
  for (const auto& [from, to] : aliases) {
    if (key == from) return to;
    if (key.size() > from.size() && key.compare(0, from.size(), from) == 0 && key[from.size()] == '.') return to + key.substr(from.size());
  }
  return key;
}

// Moves what was written under another name to its key; the same value twice is allowed, two values are not.
void move_aliases(ConfigNode& user, const PathAliases& aliases) {
  for (const auto& [from, to] : aliases) {
    const ConfigNode* found = user.find(from);
    if (found == nullptr) continue;
    const ConfigNode value = *found;
    if (const ConfigNode* other = user.find(to); other != nullptr && !(*other == value))
      throw UsageError(
          str(value.where.prefix(), from, " (", value.shown(), ") and ", to, " (", other->shown(), ") are the same key with two values"));
    user.erase(from);
    user.make(to) = value;
    // Of filter_groups.enable, filter_groups is no key either.
    const std::string around = from.substr(0, from.rfind('.'));
    if (const ConfigNode* left = user.find(around); left != nullptr && left->is_map() && left->members.empty()) user.erase(around);
  }
}

// NeMo-Aligner's files may open with a `defaults` list that includes other files. Entries without effect are allowed.
void drop_defaults_list(ConfigNode& user) {
  const ConfigNode* list = user.member("defaults");
  if (list == nullptr || list->kind != ConfigNode::Kind::list) return;
  for (const ConfigNode& entry : list->items) {
    const std::string shown = entry.is_map() && !entry.members.empty() ? entry.members[0].first : entry.text;
    if (shown == "_self_" || shown.rfind("optional ", 0) == 0) continue;
    throw UsageError(str(entry.where.prefix(), "defaults: config groups are not supported (", shown, "); write its keys into this file"));
  }
  user.erase("defaults");
}

// Is the key, or a section that it is in, one that is accepted or refused by name?
bool is_noted(const Section& section, std::string_view key) {
  const auto [name, rest] = split_path(key);
  const auto named = [wanted = name](const auto& entry) { return entry.name == wanted; };
  for (const auto* notes : {&section.ignored, &section.refused})
    if (std::any_of(notes->begin(), notes->end(), named)) return true;
  const auto field = std::find_if(section.fields.begin(), section.fields.end(), named);
  return field != section.fields.end() && field->section && is_noted(field->section(), rest);
}

void apply(ConfigNode& user, const Section& section, const PathAliases& aliases, const std::string& text) {
  Override change = parse_override(text);
  change.key = without_alias(change.key, aliases);
  const ConfigNode* present = user.find(change.key);
  if (change.kind == OverrideKind::remove) {
    const std::optional<Field> field = find_field(section, change.key);
    const bool is_known = field || present != nullptr || is_noted(section, change.key);
    check(is_known, kCommandLine, ": ", text, ": unknown key \"", change.key, "\"", nearest_hint(change.key, all_keys(section)));
    user.erase(change.key);
    const bool is_whole_field = field && (change.key == field->name || change.key.ends_with("." + field->name));
    if (is_whole_field && (field->nullable || !field->rules.null_means.empty())) {
      user.make(change.key) = ConfigNode::null();
      user.find(change.key)->where = {kCommandLine, 0};
    }
    return;
  }
  check(change.kind != OverrideKind::add || present == nullptr, kCommandLine, ": ", text, ": key \"", change.key,
        "\" is set already; change it with ", change.key, "=... or ++", change.key, "=...");
  ConfigNode given = ConfigNode::map();
  given.make(change.key) = change.value;
  move_aliases(given, aliases);  // those inside the value
  overlay(user, given);
  for (size_t dot = change.key.find('.'); dot != std::string::npos; dot = change.key.find('.', dot + 1)) {
    ConfigNode& parent = *user.find(std::string_view(change.key).substr(0, dot));
    if (parent.where.is_default()) parent.where = change.value.where, parent.added = change.value.added;
  }
}

// A section's heading with nothing below it changes nothing, nor does a null in a file where a section cannot be null. In those for which
// null means something, it sets their keys.
void drop_empty_sections(ConfigNode& user, const Section& section) {
  for (const Field& field : section.fields) {
    ConfigNode* value = user.member(field.name);
    if (value == nullptr || !field.section) continue;
    const bool is_written = value->is_null() && !value->text.empty();
    if (is_written && !field.rules.null_means.empty()) {
      const Where where = value->where;
      *value = ConfigNode::map();
      value->where = where;
      for (const auto& [key, meaning] : field.rules.null_means)
        value->members.emplace_back(key, ConfigNode::scalar(meaning)).second.where = where;
    } else if (value->is_null() && !field.nullable && !(is_written && value->where.file == kCommandLine)) {
      user.erase(field.name);
    } else {
      drop_empty_sections(*value, field.section());
    }
  }
}

// Only what is given. A key that follows another has no default of its own.
void bind_defaults(const Section& section, const ConfigNode& given, const std::string& path, BindReport& report) {
  for (const auto& [name, value] : given.members) {
    const std::string key = join_path(path, name);
    const auto named = [&, wanted = std::string_view(name)](const Field& field) { return field.name == wanted; };
    const auto field = std::find_if(section.fields.begin(), section.fields.end(), named);
    if (field == section.fields.end() || !field->rules.follows.empty()) {
      report.errors.push_back(str(value.where.prefix(), key, ": no key that a recipe can set", nearest_hint(key, report.known_keys)));
    } else if (field->section && value.is_map()) {
      bind_defaults(field->section(), value, key, report);
    } else {
      field->set(value, key, report);
    }
  }
}

std::string meaning_of(const Field& field) {
  std::string extra = bounds_text(field.rules);
  if (!field.rules.unit.empty()) extra = field.rules.unit + (extra.empty() ? "" : ", ") + extra;
  return extra.empty() ? field.help : str(field.help, " (", extra, ")");
}

}  // namespace

PathAliases all_aliases(const Section& section) {
  PathAliases aliases;
  for_each_section(section, "", [&](const Section& inner, const std::string& path) {
    for (const auto& [from, to] : inner.aliases) aliases.emplace_back(join_path(path, from), join_path(path, to));
  });
  return aliases;
}

void set_defaults(const Section& section, const ConfigText& text) {
  ConfigNode given = parse_yaml(text.yaml, text.origin);
  check(given.is_map(), given.where.prefix(), "expected keys and values at the top level, found ", given.shown());
  move_aliases(given, all_aliases(section));
  BindReport report;
  report.known_keys = all_keys(section);
  bind_defaults(section, given, "", report);
  std::string problems;
  for (const std::string& error : report.errors) problems += (problems.empty() ? "" : "\n") + error;
  check(problems.empty(), problems);
}

std::vector<std::string> load_section(const Section& section, const ConfigText& text, const std::vector<std::string>& overrides) {
  ConfigNode user = parse_yaml(text.yaml, text.origin);
  check(user.is_map(), user.where.prefix(), "expected keys and values at the top level, found ", user.shown());
  const PathAliases aliases = all_aliases(section);
  move_aliases(user, aliases);
  for (const std::string& change : overrides) apply(user, section, aliases, change);
  drop_defaults_list(user);
  return load_section(section, std::move(user));
}

std::vector<std::string> load_section(const Section& section, ConfigNode user) {
  drop_empty_sections(user, section);
  ConfigNode tree = defaults_node(section, &user);
  overlay(tree, user);
  resolve_references(tree, all_aliases(section), implied_values(section));
  BindReport report;
  report.known_keys = all_keys(section);
  bind_section(section, tree, "", report);
  std::string problems;
  for (const std::string& error : report.errors) problems += (problems.empty() ? "" : "\n") + error;
  check(problems.empty(), problems);
  return report.warnings;
}

void load_config(const Section& section, const std::optional<Path>& file, const std::vector<std::string>& overrides) {
  const ConfigText text = file ? ConfigText{file->string(), read_text(*file)} : ConfigText{};
  const std::vector<std::string> warnings = load_section(section, text, overrides);
  if (warnings.empty()) return;
  std::string all = warnings.size() == 1 ? warnings[0] : str(warnings.size(), " keys have no effect here:");
  if (warnings.size() > 1)
    for (const std::string& warning : warnings) all += "\n  " + warning;
  log_warn_of_job(all);
}

std::vector<std::string> take_older_values(const Section& section, const Json& written) {
  std::vector<std::string> taken;
  for (const Field& field : section.fields) {
    const Json* value = written.is_object() ? written.find(field.name) : nullptr;
    if (field.section && value != nullptr && value->is_object()) {
      for (const std::string& inner : take_older_values(field.section(), *value)) taken.push_back(join_path(field.name, inner));
    } else if (value == nullptr && !field.rules.older.empty()) {
      BindReport report;
      field.set(ConfigNode::scalar(field.rules.older), field.name, report);
      ensure(report.errors.empty(), field.name, ": ", field.rules.older, " is not one of its values");
      taken.push_back(str(field.name, "=", field.rules.older));
    }
  }
  return taken;
}

std::string dump_config(const Section& section) { return to_yaml(section_node(section)); }

std::string commented_yaml(const Section& section) {
  return to_yaml(defaults_node(section), [&](const std::string& path) {
    const std::optional<Field> field = find_field(section, path);
    if (!field) return std::string();
    return field->section ? meaning_of(*field) : str(meaning_of(*field), " [", field->type, "]");
  });
}

std::vector<KeyRow> key_rows(const Section& section) {
  std::vector<KeyRow> rows;
  for_each_section(section, "", [&](const Section& inner, const std::string& path) {
    const ConfigNode defaults = defaults_node(inner);
    for (const Field& field : inner.fields)
      if (!field.section)
        rows.push_back({join_path(path, field.name), field.type, field.rules.required ? "(required)" : defaults.member(field.name)->shown(),
                        meaning_of(field)});
  });
  return rows;
}

std::vector<std::string> all_keys(const Section& section) {
  std::vector<std::string> keys;
  for_each_section(section, "", [&](const Section& inner, const std::string& path) {
    for (const Field& field : inner.fields) keys.push_back(join_path(path, field.name));
  });
  return keys;
}

}  // namespace kedge
