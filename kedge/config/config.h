#pragma once
// Loads a configuration struct from YAML and overrides, and shows it again. The struct lists its keys as config_schema.h
// says; rules of the language are in docs/config.md.
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"

namespace kedge {

// YAML text and the name it goes by in errors.
struct ConfigText {
  std::string origin, yaml;
};

// Fills the fields of `section` and returns warnings. Throws one UsageError that lists everything wrong, a line each.
// Overrides are key=value, +key=value, ++key=value and ~key; later ones win.
[[nodiscard]] std::vector<std::string> load_section(const Section& section, const ConfigText& text,
                                                    const std::vector<std::string>& overrides);

// The same from a tree that was read elsewhere (the flags of a command line).
[[nodiscard]] std::vector<std::string> load_section(const Section& section, ConfigNode user);

// From a file, or from the defaults where none is named; warnings are logged.
void load_config(const Section& section, const std::optional<Path>& file, const std::vector<std::string>& overrides);

// The resolved configuration as YAML; loading it gives an equal struct.
[[nodiscard]] std::string dump_config(const Section& section);

// A file to start from: every key at its default with its meaning above it.
[[nodiscard]] std::string commented_yaml(const Section& section);

struct KeyRow {
  std::string key, type, default_value, meaning;
};
// One row a key, sections left out, for tables and docs.
[[nodiscard]] std::vector<KeyRow> key_rows(const Section& section);

// Every dotted key, sections included.
[[nodiscard]] std::vector<std::string> all_keys(const Section& section);

}  // namespace kedge
