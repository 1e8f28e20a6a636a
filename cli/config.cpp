#include "kedge/config/config.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "kedge/config/key_classes.h"
#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/text/unicode/text_layout.h"

#include "cli/commands.h"
#include "cli/default_settings.h"
#include "cli/named_configs.h"
#include "cli/recipes.h"

namespace kedge::cli {
namespace {

struct ConfigOptions {
  std::string name;
  std::optional<std::string> keys, recipe;
  bool yaml = false, json = false;

  void fields(auto&& field) {
    field("name", name, "which configuration");
    field("keys", keys, "a YAML file: print what becomes of each of its keys (honoured, converted, ignored, refused, unknown)");
    field("recipe", recipe, "show the values of this recipe as the defaults; kedge grpo --help lists them");
    field("yaml", yaml, "print a commented YAML file to start from");
    field("json", json, "print one JSON object per line: every key, its aliases, and ignored or rejected keys");
  }
};

const std::vector<std::string> kConfigPositionals = {"name"};

// `text` in lines of a screen's width, each after `margin`.
std::string lines_behind(const std::string& margin, std::string_view text) {
  std::string lines;
  for (const std::string& part : wrap(text, kHelpWidth - margin.size())) lines += margin + part + "\n";
  return lines;
}

// A line with key, type and default in columns, if there is room, and the description below it.
std::string table_of(const std::vector<KeyRow>& rows) {
  constexpr size_t kWidestType = 24;  // a few long ones would push every default off the screen; their own rows are uneven
  std::array<size_t, 2> widths = {3, 4};
  for (const KeyRow& row : rows) {
    widths[0] = std::max(widths[0], row.key.size());
    if (row.type.size() <= kWidestType) widths[1] = std::max(widths[1], row.type.size());
  }
  const auto pad = [](const std::string& text, size_t width) {
    return text + std::string(std::max(text.size(), width) - text.size() + 2, ' ');
  };
  std::string text = pad("KEY", widths[0]) + pad("TYPE", widths[1]) + "DEFAULT\n    MEANING\n";
  for (const KeyRow& row : rows) {
    const std::string kind = pad(row.type, widths[1]) + row.default_value, line = pad(row.key, widths[0]) + kind;
    const bool has_room = columns_of(line) <= kHelpWidth;
    text += has_room ? line + "\n" : row.key + "\n" + lines_behind("  ", str(row.type, "  ", row.default_value));
    text += lines_behind("    ", row.meaning);
  }
  return text;
}

// The commented file with its comments and long lists in lines of a screen's width.
std::string narrow(const std::string& yaml) {
  std::string text;
  for (size_t from = 0; from < yaml.size();) {
    const size_t to = std::min(yaml.size(), yaml.find('\n', from));
    const std::string line = yaml.substr(from, to - from), margin(std::min(line.size(), line.find_first_not_of(' ')), ' ');
    const std::string content = line.substr(margin.size());
    if (columns_of(line) <= kHelpWidth) {
      text += line + "\n";
    } else if (content.starts_with('#')) {
      text += lines_behind(margin + "# ", content.substr(2));
    } else if (const size_t list = content.find(": ["); list != std::string::npos && content.find('"') == std::string::npos) {
      text += margin + content.substr(0, list + 1) + "\n" + lines_behind(margin + "  ", content.substr(list + 2));
    } else {
      text += line + "\n";  // a text, which a line end would change
    }
    from = to + 1;
  }
  return text;
}

void add_other_names(std::string& text, const Section& section, const std::string& path) {
  const auto add = [&](const std::string& name, std::string_view what, const std::string& about) {
    text += Json(Json::Object{{"key", join_path(path, name)}, {std::string(what), about}}).dump() + "\n";
  };
  for (const auto& [from, to] : section.aliases) add(from, "same_as", join_path(path, to));
  for (const Section::Note& note : section.ignored) add(note.name, "no_effect", note.why);
  for (const Section::Note& note : section.refused) add(note.name, "refused", note.why);
  for (const Section::Note& note : section.converted) add(note.name, "converted", note.why);
  for (const Field& field : section.fields)
    if (field.section) add_other_names(text, field.section(), join_path(path, field.name));
}

// The keys, then the names that are not keys: what each means, or why it has no effect or is rejected.
std::string lines_of(const Section& section) {
  std::string text;
  for (const KeyRow& row : key_rows(section))
    text +=
        Json(Json::Object{{"key", row.key}, {"type", row.type}, {"default", row.default_value}, {"meaning", row.meaning}}).dump() + "\n";
  add_other_names(text, section, "");
  return text;
}

// Of a file: its keys, in JSON or by class, those that matter most first.
std::string classes_of(const Section& section, const Path& file, bool as_json) {
  const std::vector<ClassedKey> keys = classify_keys(section, {file.string(), read_text(file)});
  std::string text;
  if (as_json) {
    for (const ClassedKey& key : keys)
      text +=
          Json(Json::Object{{"key", key.key}, {"value", key.value}, {"class", std::string(name_of(key.kind))}, {"note", key.note}}).dump() +
          "\n";
    return text;
  }
  for (const KeyClass kind : {KeyClass::unknown, KeyClass::refused, KeyClass::converted, KeyClass::ignored, KeyClass::honoured}) {
    const auto is_kind = [&](const ClassedKey& key) { return key.kind == kind; };
    const auto count = std::count_if(keys.begin(), keys.end(), is_kind);
    if (count == 0) continue;
    text += str(text.empty() ? "" : "\n", name_of(kind), " (", count, count == 1 ? " key)\n" : " keys)\n");
    for (const ClassedKey& key : keys) {
      if (!is_kind(key)) continue;
      text += str("  ", key.key, ": ", key.value, "\n");
      if (!key.note.empty()) text += lines_behind("      ", key.note);
    }
  }
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

std::string config_flags() { return str(options_help<ConfigOptions>(kConfigPositionals), "\nConfigurations\n", names_of_configs()); }

int run_config(const Arguments& arguments) {
  const auto options = parse_options<ConfigOptions>(arguments, kConfigPositionals);
  check(!options.name.empty(), "kedge config: which one?\n", names_of_configs());
  const NamedConfig* found = find_config(options.name);
  check(found != nullptr, "no configuration \"", options.name, "\"", nearest_hint(options.name, config_names()), "; there are:\n",
        names_of_configs());
  const Section section = found->section();
  if (options.recipe) set_recipe(section, options.name, *options.recipe);
  check(!(options.yaml && options.json), "kedge config: --yaml and --json are two forms of the same; give one of them");
  check(!(options.yaml && options.keys), "kedge config: --yaml and --keys are two questions; give one of them");
  const std::string text = options.keys   ? classes_of(section, *options.keys, options.json)
                           : options.yaml ? str("# kedge config ", found->name, ": ", found->about, "\n", narrow(commented_yaml(section)))
                           : options.json ? lines_of(section)
                                          : table_of(key_rows(section));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace kedge::cli
