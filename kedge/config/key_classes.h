#pragma once
// What becomes of each key that a configuration file has: for people who bring files of another system.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/config/config.h"

namespace kedge {

// Read; read under another name or with another meaning; accepted without effect; accepted with some values only, or not at all; not known.
enum class KeyClass { honoured, converted, ignored, refused, unknown };
[[nodiscard]] std::string_view name_of(KeyClass kind);

struct ClassedKey {
  std::string key, value;  // as the file has them
  KeyClass kind = KeyClass::honoured;
  std::string note;  // the key that is read in its place, or why it has no effect or is refused
};

// Every key of the file that has a value, in its order; references are not resolved.
[[nodiscard]] std::vector<ClassedKey> classify_keys(const Section& section, const ConfigText& text);

}  // namespace kedge
