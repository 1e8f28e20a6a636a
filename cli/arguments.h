#pragma once
// Command-line flags onto the same fields that configuration files use: --max-steps 5 sets max_steps.
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config.h"

namespace kedge::cli {

using Arguments = std::vector<std::string>;

// --key value, --key=value, --flag, --no-flag; a flag given twice makes a list where the field is one. Dashes stand for
// underscores, dots reach into sections. Other arguments fill `positionals` in order; a list among them takes all that come. Values are
// taken as they stand. Throws UsageError: unknown flag with the nearest names, missing value, argument too many, and whatever binding
// finds.
void parse_arguments(const Section& section, const Arguments& arguments, const std::vector<std::string>& positionals);

// The arguments of a command that takes a configuration: CONFIG.yaml [key=value ...], or as the reference's programs are called,
// --config-path DIR --config-name NAME [key=value ...] (NAME with or without .yaml).
struct ConfigArguments {
  std::optional<Path> file;
  std::vector<std::string> overrides;
};
[[nodiscard]] ConfigArguments read_config_arguments(const Arguments& arguments);

// No line of a help is wider.
inline constexpr size_t kHelpWidth = 110;

// The flags of a command, one a line, for its help; long meanings go on below.
[[nodiscard]] std::string flags_help(const Section& section, const std::vector<std::string>& positionals);

}  // namespace kedge::cli
