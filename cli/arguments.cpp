#include "cli/arguments.h"

#include <algorithm>

#include "kedge/config/config_overrides.h"
#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

std::string key_of(std::string flag) {
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

bool is_positional(const std::string& key, const std::vector<std::string>& positionals) {
  return std::find(positionals.begin(), positionals.end(), key) != positionals.end();
}

// A flag that may be null is one that is left out.
std::string without_null(const std::string& type) { return type.substr(0, type.find(" or null")); }

// Given by its name alone: --flag, --no-flag.
bool is_switch(const std::string& type) { return without_null(type) == "bool"; }

// Given several times, each with one value.
bool is_list(const std::string& type) { return type.starts_with("list of "); }

// MODEL for a positional argument, --max-tokens for a flag.
std::string shown_name(std::string key, const std::vector<std::string>& positionals) {
  if (!is_positional(key, positionals)) return flag_of(std::move(key));
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::toupper(c); });
  return key;
}

// "--seed <integer>", "--sort reward | kl", "--json", "RUN", "RUNS...".
std::string left_of(const KeyRow& row, const std::vector<std::string>& positionals) {
  const std::string name = shown_name(row.key, positionals), type = without_null(row.type);
  if (is_positional(row.key, positionals)) return name + (is_list(row.type) ? "..." : "");
  if (type == "bool") return name;
  return name + " " + (type.find('|') == std::string::npos ? "<" + type + ">" : type);
}

// " [16]", " (required)"; empty if there is no default.
std::string default_text(const KeyRow& row) {
  const std::string& value = row.default_value;
  if (value == "(required)") return " " + value;
  return value == "null" || value == "false" || value == "\"\"" ? "" : str(" [", value, "]");
}

class FlagReader {
 public:
  FlagReader(const Section& section, const Arguments& arguments, const std::vector<std::string>& positionals)
      : section_(section), arguments_(arguments), positionals_(positionals) {}

  ConfigNode read() {
    bool flags_may_come = true;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (flags_may_come && argument == "--") {
        flags_may_come = false;
      } else if (flags_may_come && argument.size() > 2 && argument.rfind("--", 0) == 0) {
        flag(argument);
      } else {
        check(num_positionals_ < positionals_.size(), "unexpected argument \"", argument, "\"");
        const std::string& key = positionals_[num_positionals_];
        set(key, argument);
        const auto field = find_field(section_, key);
        if (!field || !is_list(field->type)) ++num_positionals_;
      }
    }
    for (const Field& field : section_.fields)
      check(!field.rules.required || user_.member(field.name) != nullptr, "missing ", shown_name(field.name, positionals_), " (",
            field.help, ")");
    return std::move(user_);
  }

 private:
  void flag(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::string key = key_of(name);
    if (const auto field = find_field(section_, key); field && !field->section) {
      if (equals != std::string::npos) return set(key, argument.substr(equals + 1));
      if (is_switch(field->type)) return set(key, "true");
      check(next_ < arguments_.size(), argument, ": expected a value (", field->help, ")");
      return set(key, arguments_[next_++]);
    }
    const auto negated = name.rfind("no-", 0) == 0 ? find_field(section_, key_of(name.substr(3))) : std::nullopt;
    if (negated && is_switch(negated->type) && equals == std::string::npos) return set(key_of(name.substr(3)), "false");
    std::vector<std::string> known;
    for (const std::string& other : all_keys(section_)) known.push_back(flag_of(other));
    throw UsageError(str("unknown flag --", name, nearest_hint("--" + name, known)));
  }

  void set(const std::string& key, const std::string& value) {
    ConfigNode node = ConfigNode::scalar(value);
    node.settled = true;  // a shell user's ${ is text
    node.where = {kCommandLine, 0};
    const auto field = find_field(section_, key);
    ConfigNode& place = user_.make(key);
    if (field && is_list(field->type)) {
      if (place.kind != ConfigNode::Kind::list) place = ConfigNode::list({});
      place.where = node.where;
      place.items.push_back(std::move(node));
    } else {
      place = std::move(node);
    }
  }

  const Section& section_;
  const Arguments& arguments_;
  const std::vector<std::string>& positionals_;
  ConfigNode user_ = ConfigNode::map();
  size_t next_ = 0;
  size_t num_positionals_ = 0;
};

}  // namespace

void parse_arguments(const Section& section, const Arguments& arguments, const std::vector<std::string>& positionals) {
  for (const std::string& warning : load_section(section, FlagReader(section, arguments, positionals).read())) log_warn(warning);
}

ConfigArguments read_config_arguments(const Arguments& arguments) {
  ConfigArguments result;
  std::optional<std::string> folder, name;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag == "--config-path" || flag == "--config-name") {
      const bool has_value = flag.size() < argument.size();
      check(has_value || i + 1 < arguments.size(), flag, ": expected a value");
      (flag == "--config-path" ? folder : name) = has_value ? argument.substr(flag.size() + 1) : arguments[++i];
    } else if (is_override(argument)) {
      result.overrides.push_back(argument);
    } else {
      check(argument.rfind("--", 0) != 0, "unknown flag ", flag, "; settings are given as key=value");
      check(!result.file, "two configuration files: ", result.file->string(), " and ", argument);
      result.file = argument;
    }
  }
  check(!folder || name, "--config-path requires --config-name");
  check(!name || !result.file, "two configuration files: ", result.file.value_or("").string(), " and --config-name ", name.value_or(""));
  if (name) result.file = Path(folder.value_or(".")) / (name->ends_with(".yaml") ? *name : *name + ".yaml");
  return result;
}

std::optional<std::string> take_flag(Arguments& arguments, const std::string& flag, std::string_view wanted) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != flag && !arguments[i].starts_with(flag + "=")) continue;
    const bool joined = arguments[i] != flag;
    check(joined || i + 1 < arguments.size(), flag, ": expected ", wanted);
    const std::string value = joined ? arguments[i].substr(flag.size() + 1) : arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<int64_t>(i), arguments.begin() + static_cast<int64_t>(i) + (joined ? 1 : 2));
    return value;
  }
  return std::nullopt;
}

std::string flags_help(const Section& section, const std::vector<std::string>& positionals) {
  constexpr size_t kWidestLeft = 36;  // a wider one leaves no room: its description goes below
  const std::vector<KeyRow> rows = key_rows(section);
  size_t width = 0;
  for (const KeyRow& row : rows)
    if (const size_t size = left_of(row, positionals).size(); size <= kWidestLeft) width = std::max(width, size);
  const std::string margin(width + 4, ' ');
  std::string text;
  for (const KeyRow& row : rows) {
    std::string line = "  " + left_of(row, positionals);
    const bool is_wide = line.size() > width + 2;
    line += is_wide ? "\n" + margin : std::string(margin.size() - line.size(), ' ');
    bool is_first = true;
    for (const std::string& part : wrap(row.meaning + default_text(row), kHelpWidth - margin.size())) {
      line += (is_first ? "" : "\n" + margin) + part;
      is_first = false;
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace kedge::cli
