#pragma once
// Loads a configuration struct from YAML and overrides, and prints it. The struct lists its keys as config_schema.h
// describes; rules of the language are in docs/config.md.
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"

namespace kedge {

// YAML text and its name in errors.
struct ConfigText {
  std::string origin, yaml;
};

// Fills the fields of `section` and returns warnings. Throws one UsageError that lists all errors, one per line.
// Overrides are key=value, +key=value, ++key=value and ~key; later ones win.
[[nodiscard]] std::vector<std::string> load_section(const Section& section, const ConfigText& text,
                                                    const std::vector<std::string>& overrides);

// The same from a tree that was read elsewhere (the flags of a command line).
[[nodiscard]] std::vector<std::string> load_section(const Section& section, ConfigNode user);

// Sets the defaults of `section` to these values: loading then starts from them. UsageError for unknown keys and wrong values.
void set_defaults(const Section& section, const ConfigText& text);

// From a file, or from the defaults if none is given; warnings are logged.
void load_config(const Section& section, const std::optional<Path>& file, const std::vector<std::string>& overrides);

// Settings that an older program wrote out completely, and that were loaded into `section`: keys that it did not know get the value that it
// had for them. Returns those keys, with their values: "model.ppo.logprob_temperature=one".
std::vector<std::string> take_older_values(const Section& section, const Json& written);

// The resolved configuration as YAML; loading it gives an equal struct.
[[nodiscard]] std::string dump_config(const Section& section);

// A file to start from: every key at its default with its meaning above it.
[[nodiscard]] std::string commented_yaml(const Section& section);

struct KeyRow {
  std::string key, type, default_value, meaning;
};
// One row per key, without sections, for tables and docs.
[[nodiscard]] std::vector<KeyRow> key_rows(const Section& section);

// Every other name of a key and the key, both dotted.
[[nodiscard]] PathAliases all_aliases(const Section& section);

// Every dotted key, sections included.
[[nodiscard]] std::vector<std::string> all_keys(const Section& section);

}  // namespace kedge
