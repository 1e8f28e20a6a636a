#include "kedge/core/config.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/nearest.h"

#include "cli/commands.h"
#include "cli/default_settings.h"
#include "cli/named_configs.h"

namespace kedge::cli {
namespace {

struct ConfigOptions {
  std::string name;
  bool yaml = false, json = false;

  void fields(auto&& field) {
    field("name", name, "which configuration");
    field("yaml", yaml, "print a commented YAML file to start from");
    field("json", json, "one JSON object a line: every key, and other names that are taken, with or without an effect");
  }
};

const std::vector<std::string> kConfigPositionals = {"name"};

std::string table_of(const std::vector<KeyRow>& rows) {
  std::array<size_t, 3> widths = {3, 4, 7};  // of the headings
  for (const KeyRow& row : rows) {
    widths[0] = std::max(widths[0], row.key.size());
    widths[1] = std::max(widths[1], row.type.size());
    widths[2] = std::max(widths[2], row.default_value.size());
  }
  const auto line = [&](const KeyRow& row) {
    const auto pad = [](const std::string& text, size_t width) { return text + std::string(width - text.size() + 2, ' '); };
    return pad(row.key, widths[0]) + pad(row.type, widths[1]) + pad(row.default_value, widths[2]) + row.meaning + "\n";
  };
  std::string text = line({"KEY", "TYPE", "DEFAULT", "MEANING"});
  for (const KeyRow& row : rows) text += line(row);
  return text;
}

void add_other_names(std::string& text, const Section& section, const std::string& path) {
  const auto add = [&](const std::string& name, std::string_view what, const std::string& about) {
    text += Json(Json::Object{{"key", join_path(path, name)}, {std::string(what), about}}).dump() + "\n";
  };
  for (const auto& [from, to] : section.aliases) add(from, "same_as", join_path(path, to));
  for (const Section::Note& note : section.ignored) add(note.name, "no_effect", note.why);
  for (const Section::Note& note : section.refused) add(note.name, "refused", note.why);
  for (const Field& field : section.fields)
    if (field.section) add_other_names(text, field.section(), join_path(path, field.name));
}

// The keys, then the names that are not keys: what each stands for, or why it has no effect or is refused.
std::string lines_of(const Section& section) {
  std::string text;
  for (const KeyRow& row : key_rows(section))
    text +=
        Json(Json::Object{{"key", row.key}, {"type", row.type}, {"default", row.default_value}, {"meaning", row.meaning}}).dump() + "\n";
  add_other_names(text, section, "");
  return text;
}

std::string names_of_configs() {
  std::string text;
  for (const NamedConfig& config : named_configs())
    text += str("  ", config.name, std::string(14 - config.name.size(), ' '), config.about, "\n");
  return text;
}

}  // namespace

std::optional<std::string> default_settings(std::string_view name) {
  const NamedConfig* config = find_config(name);
  return config == nullptr ? std::nullopt : std::optional(dump_config(config->section()));
}

std::string config_flags() {
  ConfigOptions options;
  return str(flags_help(describe(options), kConfigPositionals), "\nConfigurations\n", names_of_configs());
}

int run_config(const Arguments& arguments) {
  ConfigOptions options;
  parse_arguments(describe(options), arguments, kConfigPositionals);
  check(!options.name.empty(), "kedge config: which one?\n", names_of_configs());
  const NamedConfig* found = find_config(options.name);
  check(found != nullptr, "no configuration \"", options.name, "\"", nearest_hint(options.name, config_names()), "; there are:\n",
        names_of_configs());
  const Section section = found->section();
  check(!(options.yaml && options.json), "kedge config: --yaml and --json are two forms of the same; give one of them");
  const std::string text = options.yaml   ? str("# kedge config ", found->name, ": ", found->about, "\n", commented_yaml(section))
                           : options.json ? lines_of(section)
                                          : table_of(key_rows(section));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace kedge::cli
