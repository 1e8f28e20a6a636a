#pragma once
// What may change between a run and its continuation. Compares two configurations key by key; independent of the keys.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

enum class ChangeKind {
  free,       // takes effect from here on
  converted,  // the state is carried over to it
  refused,    // the state cannot be
};

// For a key, or for all keys below it if it is a section; of several rules the longest key decides. Without one a key is free.
struct ChangeRule {
  std::string_view key;
  ChangeKind kind;
  std::string_view why;
};

struct ConfigChange {
  std::string key, before, after;  // values as JSON; "" if the key was missing
  ChangeKind kind = ChangeKind::free;
  std::string why;
};

[[nodiscard]] std::vector<ConfigChange> config_changes(const Json& before, const Json& after, std::span<const ChangeRule> rules);

// Logs what changed. Refused changes are one UsageError that names them all; `checkpoint` opens it.
void accept_changes(const std::vector<ConfigChange>& changes, std::string_view checkpoint);

}  // namespace kedge
