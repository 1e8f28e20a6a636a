#pragma once
// A configuration as a tree, before it is bound to structs: what was written, where, and how. Independent of keys and types.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

// Where a value came from: a line of a file, the command line (line 0), or the program's default (no file).
struct Where {
  std::string file;
  int line = 0;

  [[nodiscard]] bool is_default() const { return file.empty(); }
  // "ppo.yaml:12: ", "command line: ", or nothing for a default: the opening of every message about a value.
  [[nodiscard]] std::string prefix() const;
};

// Maximum nesting depth of configurations: parsers recurse once per level.
inline constexpr size_t kMaxConfigDepth = 64;

struct ConfigNode {
  enum class Kind { null, scalar, list, map };

  using Member = std::pair<std::string, ConfigNode>;

  Kind kind = Kind::null;
  std::string text;      // of a scalar, as written; of a null, how it was written
  bool quoted = false;   // a quoted scalar is text whatever it looks like
  bool settled = false;  // ${ in the text is no longer a reference
  bool added = false;    // by + or ++: an unknown key is then a warning, not an error
  std::vector<ConfigNode> items;
  std::vector<Member> members;  // in the order of the file
  Where where;

  static ConfigNode null();
  static ConfigNode scalar(std::string text, bool quoted = false);
  static ConfigNode list(std::vector<ConfigNode> items);
  static ConfigNode map(std::vector<Member> members = {});

  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  [[nodiscard]] bool is_map() const { return kind == Kind::map; }

  [[nodiscard]] const ConfigNode* member(std::string_view name) const;
  [[nodiscard]] ConfigNode* member(std::string_view name);
  // By dotted path; null when any part is missing.
  [[nodiscard]] const ConfigNode* find(std::string_view path) const;
  [[nodiscard]] ConfigNode* find(std::string_view path);
  // Creates the maps on the path; a value that is not a map is replaced.
  ConfigNode& make(std::string_view path);
  bool erase(std::string_view path);  // did it exist?

  // As a person would write it in one line: for messages and tables.
  [[nodiscard]] std::string shown() const;

  // Equality ignores where values were written.
  friend bool operator==(const ConfigNode& a, const ConfigNode& b);
};

// With all below it.
[[nodiscard]] size_t count_nodes(const ConfigNode& node);

// Other names of keys, by dotted path: {"remote_rm.host", "remote_rm.reward_model.ip"}.
using PathAliases = std::vector<std::pair<std::string, std::string>>;

// Lays `over` onto `base`: maps merge key by key, anything else replaces. A map that was written nowhere keeps the base's place.
void overlay(ConfigNode& base, const ConfigNode& over);

// A plain (unquoted) scalar or null as YAML's core rules read it: null, true, 12, 1e-6, or text.
[[nodiscard]] Json to_json(const ConfigNode& node);
[[nodiscard]] ConfigNode to_node(const Json& json);

// How scalars are read everywhere, as numbers are by core/numbers: by to_json, by the fields and by the expressions. False if the text is
// not such a value.
[[nodiscard]] bool is_null_word(std::string_view text);
[[nodiscard]] bool read_bool(std::string_view text, bool& value);

// The first part of a dotted path and the rest.
[[nodiscard]] std::pair<std::string_view, std::string_view> split_path(std::string_view path);
[[nodiscard]] std::string join_path(std::string_view parent, std::string_view name);

}  // namespace kedge
