#include "kedge/config/config_schema.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kedge/config/config_resolve.h"
#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/numbers.h"

namespace kedge {
namespace {

bool is_plain_scalar(const ConfigNode& node) { return node.kind == ConfigNode::Kind::scalar && !node.quoted; }

void escape_all(ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::scalar) node.text = escape_references(node.text);
  for (ConfigNode& item : node.items) escape_all(item);
  for (auto& [name, value] : node.members) escape_all(value);
}

std::string number_text(double value) {
  const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
  return is_whole ? std::to_string(static_cast<int64_t>(value)) : shortest(value);
}

bool within(const FieldRules& rules, double value) {
  if (rules.finite && std::isinf(value)) return false;
  if (rules.min && (rules.min_excluded ? value <= *rules.min : value < *rules.min)) return false;
  return !rules.max || (rules.max_excluded ? value < *rules.max : value <= *rules.max);
}

void check_bounds(const Field& field, const ConfigNode& value, const ConfigNode& found, const std::string& path, BindReport& report) {
  for (const ConfigNode& item : value.items) check_bounds(field, item, found, path, report);
  double number = 0;
  if (!is_plain_scalar(value) || !read_number(value.text, number) || within(field.rules, number)) return;
  report_wanted(found, path, bounds_text(field.rules), report);
}

// Similar keys for an unknown one. Sections of a list or a map are not among the keys known beforehand.
std::string hint(const Section& section, const std::string& key, const std::string& path, const BindReport& report) {
  std::vector<std::string> candidates = report.known_keys;
  for (const Field& field : section.fields) {
    std::string own = join_path(path, field.name);
    if (std::find(candidates.begin(), candidates.end(), own) == candidates.end()) candidates.push_back(std::move(own));
  }
  return nearest_hint(key, candidates);
}

// null, or a section with nothing else in it
bool says_nothing(const ConfigNode& node) {
  if (!node.is_map()) return node.is_null();
  return std::all_of(node.members.begin(), node.members.end(), [](const auto& member) { return says_nothing(member.second); });
}

void bind_unknown(const Section& section, const std::string& name, const ConfigNode& node, const std::string& path, BindReport& report) {
  const auto named = [&](const Section::Note& note) { return note.name == name; };
  const std::string key = join_path(path, name);
  if (const auto note = std::find_if(section.ignored.begin(), section.ignored.end(), named); note != section.ignored.end()) {
    report.warnings.push_back(str(node.where.prefix(), key, " is ignored: ", note->why));
  } else if (const auto no = std::find_if(section.refused.begin(), section.refused.end(), named); no != section.refused.end()) {
    const std::string value = says_nothing(node) ? "null" : node.text;
    if (std::find(no->accepted.begin(), no->accepted.end(), value) != no->accepted.end()) return;
    report.errors.push_back(str(node.where.prefix(), key, ": ", no->why, " (found ", node.shown(), ")"));
  } else if (node.added) {
    report.warnings.push_back(str(node.where.prefix(), "unused key \"", key, "\"", hint(section, key, path, report)));
  } else {
    report.errors.push_back(str(node.where.prefix(), "unknown key \"", key, "\"", hint(section, key, path, report)));
  }
}

void report_missing(const Field& field, const std::string& path, const Where& where, BindReport& report) {
  report.errors.push_back(
      str(where.prefix(), "missing required key \"", path, "\" (", field.help, "); set it in the file or with ", path, "=..."));
}

// "${.other}" of a section is "${..other.KEY}" of its keys.
void let_keys_follow(Field& field) {
  field.section = [inner = std::move(field.section), follows = field.rules.follows] {
    const std::string other = follows.substr(2, follows.size() - 3);
    Section section = inner();
    for (Field& key : section.fields) {
      key.rules.follows = str("${", other.starts_with('.') ? "." : "", other, ".", key.name, "}");
      if (key.section) let_keys_follow(key);
    }
    return section;
  };
}

}  // namespace

Section SectionBuilder::take() {
  for (Field& field : section_.fields)
    if (field.section && !field.rules.follows.empty()) let_keys_follow(field);
  return std::move(section_);
}

FieldRule at_least(double value) {
  return [value](FieldRules& rules) { rules.min = value; };
}
FieldRule at_most(double value) {
  return [value](FieldRules& rules) { rules.max = value; };
}
FieldRule above(double value) {
  return [value](FieldRules& rules) { rules.min = value, rules.min_excluded = true; };
}
FieldRule below(double value) {
  return [value](FieldRules& rules) { rules.max = value, rules.max_excluded = true; };
}
FieldRule finite() {
  return [](FieldRules& rules) { rules.finite = true; };
}
FieldRule unit(std::string name) {
  return [name = std::move(name)](FieldRules& rules) { rules.unit = name; };
}
FieldRule follows(std::string expression) {
  return [expression = std::move(expression)](FieldRules& rules) { rules.follows = expression; };
}
FieldRule null_means(std::string key, std::string value) {
  return [key = std::move(key), value = std::move(value)](FieldRules& rules) { rules.null_means.emplace_back(key, value); };
}
FieldRule formerly(std::string value) {
  return [value = std::move(value)](FieldRules& rules) { rules.older = value; };
}
FieldRule required() {
  return [](FieldRules& rules) { rules.required = true; };
}

std::string bounds_text(const FieldRules& rules) {
  std::string text;
  if (rules.min) text = str(rules.min_excluded ? "above " : "at least ", number_text(*rules.min));
  if (rules.max) text += str(text.empty() ? "" : " and ", rules.max_excluded ? "below " : "at most ", number_text(*rules.max));
  if (rules.finite) text += text.empty() ? "finite" : " and finite";
  return text;
}

bool read_scalar(const ConfigNode& node, bool& value) { return is_plain_scalar(node) && read_bool(node.text, value); }

bool read_scalar(const ConfigNode& node, int64_t& value) {
  if (!is_plain_scalar(node)) return false;
  if (read_integer(node.text, value)) return true;
  double number = 0;  // 1e4 is an integer too
  if (!read_number(node.text, number) || number != std::floor(number) || std::abs(number) > 9007199254740992.0) return false;
  value = static_cast<int64_t>(number);
  return true;
}

bool read_scalar(const ConfigNode& node, double& value) { return is_plain_scalar(node) && read_number(node.text, value); }

bool read_scalar(const ConfigNode& node, std::string& value) {
  if (node.kind != ConfigNode::Kind::scalar) return false;
  value = node.text;
  return true;
}

bool read_scalar(const ConfigNode& node, ByteSize& value) {
  struct Suffix {
    std::string_view name;
    double factor;
  };
  static constexpr std::array<Suffix, 9> kSuffixes = {
      {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}};
  if (node.kind != ConfigNode::Kind::scalar) return false;
  std::string_view text = node.text;
  double factor = 1;
  for (const Suffix& suffix : kSuffixes)
    if (text.size() > suffix.name.size() && text.substr(text.size() - suffix.name.size()) == suffix.name) {
      factor = suffix.factor;
      text.remove_suffix(suffix.name.size());
      break;
    }
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double number = 0;
  if (!read_number(text, number) || number < 0 || number * factor > 0x1p62) return false;
  value.bytes = static_cast<int64_t>(std::llround(number * factor));
  return true;
}

bool read_scalar(const ConfigNode& node, Json& value) {
  value = to_json(node);
  return true;
}

ConfigNode scalar_node(bool value) { return ConfigNode::scalar(value ? "true" : "false"); }
ConfigNode scalar_node(int64_t value) { return ConfigNode::scalar(std::to_string(value)); }
ConfigNode scalar_node(double value) { return to_node(Json(value)); }
ConfigNode scalar_node(const std::string& value) { return ConfigNode::scalar(escape_references(value), true); }
ConfigNode scalar_node(ByteSize value) { return scalar_node(value.bytes); }
ConfigNode scalar_node(const Json& value) {
  ConfigNode node = to_node(value);
  escape_all(node);
  return node;
}

ScalarNames scalar_names(bool) { return {"bool", "true or false"}; }
ScalarNames scalar_names(int64_t) { return {"integer", "an integer"}; }
ScalarNames scalar_names(double) { return {"number", "a number"}; }
ScalarNames scalar_names(const std::string&) { return {"text", "text"}; }
ScalarNames scalar_names(ByteSize) { return {"bytes", "a number of bytes such as 512MiB"}; }
ScalarNames scalar_names(const Json&) { return {"any", "a value"}; }

void report_wanted(const ConfigNode& found, const std::string& path, std::string_view wanted, BindReport& report) {
  report.errors.push_back(str(found.where.prefix(), path, ": expected ", wanted, ", found ", found.shown()));
}

void bind_section(const Section& section, const ConfigNode& node, const std::string& path, BindReport& report) {
  if (!node.is_map()) return report_wanted(node, path, "a section", report);
  for (const auto& [name, value] : node.members) {
    const auto is_named = [&, wanted = std::string_view(name)](const Field& field) { return field.name == wanted; };
    if (std::none_of(section.fields.begin(), section.fields.end(), is_named)) bind_unknown(section, name, value, path, report);
  }
  for (const Field& field : section.fields) {
    const std::string key = join_path(path, field.name);
    const ConfigNode* value = node.member(field.name);
    if (value == nullptr) {
      if (field.rules.required) report_missing(field, key, node.where, report);
    } else if (is_plain_scalar(*value) && !value->settled && value->text == kMissing) {
      report_missing(field, key, value->where, report);
    } else {
      const size_t errors_before = report.errors.size();
      field.set(*value, key, report);
      if (report.errors.size() == errors_before) check_bounds(field, field.get(), *value, key, report);
    }
  }
}

ConfigNode section_node(const Section& section) {
  ConfigNode node = ConfigNode::map();
  for (const Field& field : section.fields) node.members.emplace_back(field.name, field.get());
  return node;
}

ConfigNode defaults_node(const Section& section, const ConfigNode* user) {
  ConfigNode node = ConfigNode::map();
  for (const Field& field : section.fields) {
    const ConfigNode* mine = user == nullptr ? nullptr : user->member(field.name);
    ConfigNode value = field.get();
    if (field.section && (!value.is_null() || (mine != nullptr && mine->is_map()))) value = defaults_node(field.section(), mine);
    if (!field.section && !field.rules.follows.empty()) value = ConfigNode::scalar(field.rules.follows);
    if (field.rules.required) value = ConfigNode::scalar(kMissing);
    node.members.emplace_back(field.name, std::move(value));
  }
  return node;
}

std::optional<Field> find_field(const Section& section, std::string_view path) {
  const auto [name, rest] = split_path(path);
  for (const Field& field : section.fields)
    if (field.name == name) return rest.empty() || !field.section ? field : find_field(field.section(), rest);
  return std::nullopt;
}

}  // namespace kedge
