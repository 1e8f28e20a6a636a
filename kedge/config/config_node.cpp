#include "kedge/config/config_node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "kedge/core/error.h"
#include "kedge/core/numbers.h"

namespace kedge {

std::string Where::prefix() const {
  if (file.empty()) return "";
  return line > 0 ? str(file, ":", line, ": ") : str(file, ": ");
}

ConfigNode ConfigNode::null() {
  ConfigNode node;
  node.text = "null";
  return node;
}

ConfigNode ConfigNode::scalar(std::string text, bool quoted) {
  ConfigNode node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

ConfigNode ConfigNode::list(std::vector<ConfigNode> items) {
  ConfigNode node;
  node.kind = Kind::list;
  node.items = std::move(items);
  return node;
}

ConfigNode ConfigNode::map(std::vector<Member> members) {
  ConfigNode node;
  node.kind = Kind::map;
  node.members = std::move(members);
  return node;
}

std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : str(parent, ".", name);
}

const ConfigNode* ConfigNode::member(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

ConfigNode* ConfigNode::member(std::string_view name) { return const_cast<ConfigNode*>(std::as_const(*this).member(name)); }

const ConfigNode* ConfigNode::find(std::string_view path) const {
  const auto [name, rest] = split_path(path);
  const ConfigNode* child = member(name);
  return child == nullptr || rest.empty() ? child : child->find(rest);
}

ConfigNode* ConfigNode::find(std::string_view path) { return const_cast<ConfigNode*>(std::as_const(*this).find(path)); }

ConfigNode& ConfigNode::make(std::string_view path) {
  if (!is_map()) {
    *this = map();
  }
  const auto [name, rest] = split_path(path);
  ConfigNode* child = member(name);
  if (child == nullptr) child = &members.emplace_back(std::string(name), ConfigNode()).second;
  return rest.empty() ? *child : child->make(rest);
}

bool ConfigNode::erase(std::string_view path) {
  const auto [name, rest] = split_path(path);
  const auto found = std::find_if(members.begin(), members.end(), [&, wanted = name](const Member& m) { return m.first == wanted; });
  if (found == members.end()) return false;
  if (!rest.empty()) return found->second.erase(rest);
  members.erase(found);
  return true;
}

std::string ConfigNode::shown() const {
  std::string out;
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::scalar:
      return quoted ? Json(text).dump() : text;
    case Kind::list:
      for (const ConfigNode& item : items) out += (out.empty() ? "" : ", ") + item.shown();
      return str("[", out, "]");
    case Kind::map:
      for (const auto& [name, value] : members) out += str(out.empty() ? "" : ", ", name, ": ", value.shown());
      return str("{", out, "}");
  }
  return out;
}

bool operator==(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == ConfigNode::Kind::scalar) return a.text == b.text;
  return a.items == b.items && a.members == b.members;
}

void overlay(ConfigNode& base, const ConfigNode& over) {
  if (!base.is_map() || !over.is_map()) {
    base = over;
    return;
  }
  if (!over.where.is_default()) {
    base.where = over.where;
    base.added = over.added;
  }
  for (const auto& [name, value] : over.members) {
    if (ConfigNode* mine = base.member(name)) {
      overlay(*mine, value);
    } else {
      base.members.emplace_back(name, value);
    }
  }
}

bool is_null_word(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kWords = {"", "~", "null", "Null", "NULL"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

bool read_bool(std::string_view text, bool& value) {
  struct Word {
    std::string_view text;
    bool value;
  };
  static constexpr std::array<Word, 18> kWords = {{
      {"true", true},
      {"True", true},
      {"TRUE", true},
      {"false", false},
      {"False", false},
      {"FALSE", false},
      {"yes", true},
      {"Yes", true},
      {"YES", true},
      {"no", false},
      {"No", false},
      {"NO", false},
      {"on", true},
      {"On", true},
      {"ON", true},
      {"off", false},
      {"Off", false},
      {"OFF", false},
  }};
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) { return word.text == text; });
  if (found == kWords.end()) return false;
  value = found->value;
  return true;
}

Json to_json(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return nullptr;
    case ConfigNode::Kind::scalar: {
      bool truth = false;
      int64_t integer = 0;
      double number = 0;
      if (node.quoted) return node.text;
      if (read_bool(node.text, truth)) return truth;
      if (read_integer(node.text, integer)) return integer;
      if (read_number(node.text, number)) return number;
      return node.text;
    }
    case ConfigNode::Kind::list: {
      Json::Array items;
      for (const ConfigNode& item : node.items) items.push_back(to_json(item));
      return items;
    }
    case ConfigNode::Kind::map: {
      Json::Object members;
      for (const auto& [name, value] : node.members) members.emplace_back(name, to_json(value));
      return members;
    }
  }
  return nullptr;
}

ConfigNode to_node(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null:
      return ConfigNode::null();
    case Json::Kind::text:
      return ConfigNode::scalar(json.as_text(""), true);
    case Json::Kind::number: {
      const double number = json.as_number("");
      return ConfigNode::scalar(std::isinf(number) ? (number < 0 ? "-.inf" : ".inf") : shortest(number));
    }
    case Json::Kind::array: {
      std::vector<ConfigNode> items;
      for (const Json& item : json.as_array("")) items.push_back(to_node(item));
      return ConfigNode::list(std::move(items));
    }
    case Json::Kind::object: {
      std::vector<ConfigNode::Member> members;
      for (const auto& [name, value] : json.as_object("")) members.emplace_back(name, to_node(value));
      return ConfigNode::map(std::move(members));
    }
    default:
      return ConfigNode::scalar(json.dump());
  }
}

size_t count_nodes(const ConfigNode& node) {
  size_t count = 1;
  for (const ConfigNode& item : node.items) count += count_nodes(item);
  for (const auto& [name, value] : node.members) count += count_nodes(value);
  return count;
}

}  // namespace kedge
