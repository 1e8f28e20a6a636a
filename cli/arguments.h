#pragma once
// Command-line flags onto the same fields that configuration files use: --max-steps 5 sets max_steps.
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config.h"

namespace kedge::cli {

using Arguments = std::vector<std::string>;

// --key value, --key=value, --flag, --no-flag; a flag given twice makes a list if the field is one. Dashes mean
// underscores, dots reach into sections. Other arguments fill `positionals` in order; a list among them takes all remaining ones. Values
// are taken literally. Throws UsageError: unknown flag with the nearest names, missing value, unexpected argument, and whatever binding
// finds.
void parse_arguments(const Section& section, const Arguments& arguments, const std::vector<std::string>& positionals);
// The same for a struct with `fields`.
template <typename Options>
[[nodiscard]] Options parse_options(const Arguments& arguments, const std::vector<std::string>& positionals = {}) {
  Options options;
  parse_arguments(describe(options), arguments, positionals);
  return options;
}

// The arguments of a command that takes a configuration: CONFIG.yaml [key=value ...], or as for NeMo-Aligner's programs,
// --config-path DIR --config-name NAME [key=value ...] (NAME with or without .yaml).
struct ConfigArguments {
  std::optional<Path> file;
  std::vector<std::string> overrides;
};
[[nodiscard]] ConfigArguments read_config_arguments(const Arguments& arguments);

// The value of --flag VALUE or --flag=VALUE, which is removed. `wanted` says in an error what it should have been: "the folder of ...".
[[nodiscard]] std::optional<std::string> take_flag(Arguments& arguments, const std::string& flag, std::string_view wanted);

// No line of a help is wider.
inline constexpr size_t kHelpWidth = 110;

// The flags of a command, one per line, for its help; long descriptions continue below.
[[nodiscard]] std::string flags_help(const Section& section, const std::vector<std::string>& positionals);
// The same for a struct with `fields`.
template <typename Options>
[[nodiscard]] std::string options_help(const std::vector<std::string>& positionals = {}) {
  Options options;
  return flags_help(describe(options), positionals);
}

}  // namespace kedge::cli
