#pragma once
// References and expressions inside a configuration tree: ${a.b}, ${.sibling}, ${multiply:x,y}, ${int_div:x,y},
// ${subtract:x,y}, ${sum:x,y}. Independent of the schema.
#include <string>
#include <string_view>

#include "kedge/config/config_node.h"

namespace kedge {

// Replaces every reference by what it names. `\${` means the two characters themselves.
// Errors name the place: "ppo.yaml:3: a.b: no key \"c\" to refer to".
// `implied` are keys that may be missing in the tree, with the values they then have.
void resolve_references(ConfigNode& root, const PathAliases& aliases = {}, const PathAliases& implied = {});

// The text under which `${` in a value survives resolution.
[[nodiscard]] std::string escape_references(std::string_view text);

}  // namespace kedge
