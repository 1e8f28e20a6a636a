#include "kedge/config/yaml.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr size_t kMaxNodes = 100000;  // aliases of aliases could otherwise grow without bound

// Builds the tree from the parser's events, which carry the line of every value.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& origin, std::string_view text) : origin_(origin), text_(text) {}

  ConfigNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  // Nothing, or a word that means it: the library does not say which.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::string_view rest = text_.substr(std::min(text_.size(), static_cast<size_t>(std::max(mark.pos, 0))));
    const std::string_view word = rest.substr(0, rest.starts_with('~') ? 1 : 4);
    ConfigNode node;
    if (is_null_word(word)) node.text = word;
    add(std::move(node), mark, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    const bool quoted = tag == "!";  // the library's tag for anything not plain
    ConfigNode node = ConfigNode::scalar(value, quoted);
    if (!quoted && is_null_word(value)) node.kind = ConfigNode::Kind::null;
    add(std::move(node), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias is inside its own anchor");
    num_nodes_ += count_nodes(found->second);
    ConfigNode copy = found->second;
    add(std::move(copy), mark, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(ConfigNode::list({}), mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(ConfigNode::map(), mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    ConfigNode node;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // of a map: the next value belongs to `key`
    std::string key;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw UsageError(str(origin_, ":", mark.line + 1, ":", mark.column + 1, ": not valid YAML: ", what));
  }

  void add(ConfigNode node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (++num_nodes_ > kMaxNodes) fail(mark, str("more than ", kMaxNodes, " values"));
    node.where = {origin_, mark.line + 1};
    if (anchor != 0) anchors_[anchor] = node;
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (!level.node.is_map()) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      if (node.kind != ConfigNode::Kind::scalar) fail(mark, "a key must be a string");
      if (level.node.member(node.text) != nullptr) fail(mark, str("key \"", node.text, "\" occurs twice in one map"));
      level.key = std::move(node.text);
      level.has_key = true;
    } else {
      level.node.members.emplace_back(std::move(level.key), std::move(node));
      level.has_key = false;
    }
  }

  void open(ConfigNode node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (levels_.size() >= kMaxConfigDepth) fail(mark, str("nested deeper than ", kMaxConfigDepth, " levels"));
    levels_.push_back({std::move(node), mark, anchor, false, {}});
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    merge(level);
    add(std::move(level.node), level.mark, level.anchor);
  }

  // `<<: *base` puts the base's keys under the map's own.
  void merge(Level& level) {
    const ConfigNode* base = level.node.member("<<");
    if (base == nullptr) return;
    if (!base->is_map()) fail(level.mark, "a merge key (<<) requires a map");
    ConfigNode merged = *base;
    level.node.erase("<<");
    overlay(merged, level.node);
    level.node = std::move(merged);
  }

  const std::string& origin_;
  std::string_view text_;
  ConfigNode root_ = ConfigNode::map();
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  size_t num_nodes_ = 0;
};

// Can the text be written without quotes and read back unchanged?
bool is_safe_plain(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/';
  };
  if (text.empty() || !is_word(text[0]) ||
      !std::all_of(text.begin(), text.end(), [&](char c) { return is_word(c) || c == '.' || c == '-'; }))
    return false;
  return to_json(ConfigNode::scalar(std::string(text))).is_text() && !is_null_word(text);
}

std::string scalar_text(const ConfigNode& node) {
  if (node.is_null()) return "null";
  if (!node.quoted && (node.text == "???" || is_safe_plain(node.text) || !to_json(node).is_text())) return node.text;
  if (is_safe_plain(node.text)) return node.text;
  return Json(node.text).dump();
}

struct Emitter {
  const CommentOf& comment_of;
  std::string out;

  static bool is_leaf(const ConfigNode& node) {
    return node.kind == ConfigNode::Kind::null || node.kind == ConfigNode::Kind::scalar || (node.items.empty() && node.members.empty()) ||
           (node.kind == ConfigNode::Kind::list && std::all_of(node.items.begin(), node.items.end(), is_flat));
  }
  static bool is_flat(const ConfigNode& node) { return node.kind == ConfigNode::Kind::null || node.kind == ConfigNode::Kind::scalar; }

  static std::string leaf_text(const ConfigNode& node) {
    if (node.is_map()) return "{}";
    if (node.kind != ConfigNode::Kind::list) return scalar_text(node);
    std::string items;
    for (const ConfigNode& item : node.items) items += (items.empty() ? "" : ", ") + scalar_text(item);
    return str("[", items, "]");
  }

  void members(const ConfigNode& node, const std::string& path, size_t indent) {
    for (const auto& [name, value] : node.members) {
      const std::string here = join_path(path, name);
      const std::string margin(indent, ' ');
      if (comment_of) {
        std::istringstream lines(comment_of(here));
        for (std::string line; std::getline(lines, line);) out += str(margin, "# ", line, "\n");
      }
      out += str(margin, scalar_text(ConfigNode::scalar(name, true)), ":");
      value_after_key(value, here, indent);
    }
  }

  void value_after_key(const ConfigNode& value, const std::string& path, size_t indent) {
    if (is_leaf(value)) {
      out += str(" ", leaf_text(value), "\n");
    } else if (value.is_map()) {
      out += "\n";
      members(value, path, indent + 2);
    } else {
      out += "\n";
      items(value, path, indent + 2);
    }
  }

  void items(const ConfigNode& list, const std::string& path, size_t indent) {
    for (const ConfigNode& item : list.items) {
      out += str(std::string(indent, ' '), "-");
      value_after_key(item, path, indent);
    }
  }
};

}  // namespace

ConfigNode parse_yaml(std::string_view text, const std::string& origin) {
  if (const size_t valid = utf8_valid_prefix(text); valid != text.size()) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
    throw UsageError(str(origin, ":", line, ": not valid YAML: not UTF-8"));
  }
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(origin, text);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    ConfigNode root = builder.take();
    TreeBuilder second(origin, text);
    if (parser.HandleNextDocument(second)) throw UsageError(str(origin, ": not valid YAML: more than one document"));
    if (root.is_null()) return ConfigNode::map();
    return root;
  } catch (const YAML::Exception& error) {
    throw UsageError(str(origin, ":", error.mark.line + 1, ":", error.mark.column + 1, ": not valid YAML: ", error.msg));
  }
}

std::string to_yaml(const ConfigNode& node, const CommentOf& comment_of) {
  Emitter emitter{comment_of, {}};
  if (node.is_map()) {
    emitter.members(node, "", 0);
    if (node.members.empty()) emitter.out = "{}\n";
  } else {
    emitter.out = Emitter::is_leaf(node) ? Emitter::leaf_text(node) + "\n" : "";
    if (!Emitter::is_leaf(node)) emitter.items(node, "", 0);
  }
  return emitter.out;
}

}  // namespace kedge
