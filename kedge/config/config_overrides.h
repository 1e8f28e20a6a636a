#pragma once
// The override language of the command line: key=value, +key=value, ++key=value, ~key. Independent of the schema; what a deletion
// means for a key is up to the caller.
#include <string>
#include <string_view>

#include "kedge/config/config_node.h"

namespace kedge {

enum class OverrideKind {
  change,      // key=value
  add,         // +key=value: an error if the key is already set
  set_or_add,  // ++key=value
  remove,      // ~key
};

struct Override {
  OverrideKind kind = OverrideKind::change;
  std::string key;   // dotted
  ConfigNode value;  // none for remove
};

// `text` is one argument. Values are written as in NeMo-Aligner (Hydra): numbers, null, true/False, 'quoted' or "quoted" text,
// [a, b], {train: [f], validation: [f]} (blanks after the colon may be left out), ${a.b}, or plain text to the end, in which a backslash
// before one of \ = , : ( ) [ ] { } or a blank is dropped.
[[nodiscard]] Override parse_override(std::string_view text);

// Does the argument look like an override rather than a file name?
[[nodiscard]] bool is_override(std::string_view text);

inline constexpr const char* kCommandLine = "command line";

}  // namespace kedge
