#pragma once
// YAML text to a configuration tree and back. The only file that uses the YAML library.
#include <functional>
#include <string>
#include <string_view>

#include "kedge/config/config_node.h"

namespace kedge {

// One document; empty text is an empty map. `origin` names it in errors: "ppo.yaml:4:7: not valid YAML: ...".
// Anchors, aliases and merge keys (<<) work; a key that occurs twice in one map is an error.
[[nodiscard]] ConfigNode parse_yaml(std::string_view text, const std::string& origin);

// Reads back to an equal tree. `comment_of`, if given, returns the comment above a dotted key.
using CommentOf = std::function<std::string(const std::string& path)>;
[[nodiscard]] std::string to_yaml(const ConfigNode& node, const CommentOf& comment_of = {});

}  // namespace kedge
