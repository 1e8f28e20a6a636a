#include "kedge/config/config_resolve.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/numbers.h"

namespace kedge {
namespace {

constexpr size_t kMaxChain = 64;           // references through references
constexpr size_t kMaxText = 1 << 20;       // of one value
constexpr size_t kMaxCopiedNodes = 20000;  // sections referred to by sections

struct Number {
  bool is_integer = false;
  int64_t integer = 0;
  double number = 0;
};

bool has_reference(const ConfigNode& node) {
  return node.kind == ConfigNode::Kind::scalar && !node.settled && node.text.find("${") != std::string::npos;
}

class Resolver {
 public:
  Resolver(ConfigNode& root, const PathAliases& aliases, const PathAliases& implied) : root_(root), aliases_(aliases), implied_(implied) {}

  void resolve(ConfigNode& node, const std::string& path) {
    for (auto& [name, value] : node.members) resolve(value, join_path(path, name));
    for (size_t i = 0; i < node.items.size(); ++i) resolve(node.items[i], join_path(path, std::to_string(i)));
    if (!has_reference(node)) return;

    if (std::find(chain_.begin(), chain_.end(), path) != chain_.end()) {
      std::string circle;
      for (auto link = std::find(chain_.begin(), chain_.end(), path); link != chain_.end(); ++link) circle += *link + " -> ";
      throw UsageError(str(node.where.prefix(), path, ": circular reference: ", circle, path));
    }
    if (chain_.size() >= kMaxChain) throw UsageError(str(node.where.prefix(), path, ": more than ", kMaxChain, " references in a row"));
    chain_.push_back(path);
    const Where where = node.where;
    const bool added = node.added;
    ConfigNode value = evaluate(node.text, Place{path, where});
    value.where = where;  // an error about the value points to where it was written
    value.added = added;
    node = std::move(value);
    chain_.pop_back();
  }

 private:
  struct Place {
    const std::string& path;
    const Where& where;
  };

  [[noreturn]] static void fail(const Place& place, const std::string& what) {
    throw UsageError(str(place.where.prefix(), place.path, ": ", what));
  }

  // Text with references in it. A value that is one reference and nothing else takes the target's own kind.
  ConfigNode evaluate(std::string_view text, const Place& place) {
    std::string out;
    bool is_text = false;  // anything in addition to a single reference
    std::optional<ConfigNode> single;
    size_t at = 0;
    while (at < text.size()) {
      if (text.substr(at, 3) == "\\${") {
        out += "${", at += 3, is_text = true;
      } else if (text.substr(at, 2) != "${") {
        out += text[at++], is_text = true;
      } else {
        const size_t end = closing_brace(text, at, place);
        ConfigNode value = reference(text.substr(at + 2, end - at - 2), place);
        at = end + 1;
        if (!is_text && !single && at == text.size()) return value;
        if (value.kind == ConfigNode::Kind::list || value.is_map()) fail(place, "a list or section cannot be part of a text");
        out += value.is_null() ? "null" : value.text;
        single = std::move(value);
        is_text = true;
      }
      if (out.size() > kMaxText) fail(place, str("longer than ", kMaxText, " characters"));
    }
    ConfigNode whole = ConfigNode::scalar(std::move(out), true);
    whole.settled = true;
    return whole;
  }

  static size_t closing_brace(std::string_view text, size_t start, const Place& place) {
    int depth = 0;
    for (size_t i = start; i < text.size(); ++i) {
      if (text.substr(i, 2) == "${") ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    fail(place, str("no closing } in \"", text, "\""));
  }

  // The text between ${ and }.
  ConfigNode reference(std::string_view inner, const Place& place) {
    const size_t colon = inner.find(':');
    if (colon == std::string_view::npos) return look_up(inner, place);
    const std::string_view function = inner.substr(0, colon);
    static const std::vector<std::string> kFunctions = {"multiply", "int_div", "subtract", "sum"};
    // Before its arguments are read: another resolver's need not be numbers.
    if (std::find(kFunctions.begin(), kFunctions.end(), function) == kFunctions.end())
      fail(place, str("unknown function \"", function, "\"; known: multiply, int_div, subtract, sum"));
    return call(function, arguments(inner.substr(colon + 1), place), place);
  }

  ConfigNode look_up(std::string_view name, const Place& place) {
    std::string path = absolute(name, place);
    for (const auto& [from, to] : aliases_)
      if (path == from) path = to;
    ConfigNode* target = path.empty() ? nullptr : find(path);
    if (target == nullptr)
      for (const auto& [key, value] : implied_)
        if (key == path) return ConfigNode::scalar(value, false);
    if (target == nullptr) fail(place, str("no key \"", path, "\" to refer to", nearest_hint(path, all_paths())));
    resolve(*target, path);
    copied_nodes_ += count_nodes(*target);
    if (copied_nodes_ > kMaxCopiedNodes) fail(place, "references copy too many values");
    return *target;
  }

  // Lists are walked by index: a.0.b. A reference on the way is followed.
  ConfigNode* find(std::string_view path) {
    ConfigNode* node = &root_;
    std::string walked;
    while (!path.empty() && node != nullptr) {
      if (has_reference(*node)) resolve(*node, walked);
      const auto [name, rest] = split_path(path);
      walked = join_path(walked, name);
      int64_t index = 0;
      if (node->kind == ConfigNode::Kind::list) {
        const bool inside = read_integer(name, index) && index >= 0 && index < static_cast<int64_t>(node->items.size());
        node = inside ? &node->items[static_cast<size_t>(index)] : nullptr;
      } else {
        node = node->member(name);
      }
      path = rest;
    }
    return node;
  }

  // `.x` is a sibling of the value that refers to it, `..x` a sibling of its section.
  static std::string absolute(std::string_view name, const Place& place) {
    if (name.empty() || name[0] != '.') return std::string(name);
    std::string_view base = place.path;
    while (!name.empty() && name[0] == '.') {
      name.remove_prefix(1);
      const size_t dot = base.rfind('.');
      base = dot == std::string_view::npos ? std::string_view() : base.substr(0, dot);
    }
    return join_path(base, name);
  }

  [[nodiscard]] std::vector<std::string> all_paths() const {
    std::vector<std::string> paths;
    collect(root_, "", paths);
    return paths;
  }
  static void collect(const ConfigNode& node, const std::string& path, std::vector<std::string>& paths) {
    for (const auto& [name, value] : node.members) {
      if (paths.size() > 2000) return;
      const std::string here = join_path(path, name);
      paths.push_back(here);
      collect(value, here, paths);
    }
  }

  std::vector<Number> arguments(std::string_view text, const Place& place) {
    std::vector<Number> numbers;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text.substr(i, 2) == "${") ++depth;
      if (i < text.size() && text[i] == '}') --depth;
      if (i == text.size() || (text[i] == ',' && depth == 0)) {
        numbers.push_back(argument(text.substr(start, i - start), place));
        start = i + 1;
      }
    }
    return numbers;
  }

  Number argument(std::string_view text, const Place& place) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    const ConfigNode value = evaluate(text, place);
    Number result;
    result.is_integer = read_integer(value.text, result.integer);
    result.number = static_cast<double>(result.integer);
    if (!result.is_integer && !read_number(value.text, result.number))
      fail(place, str("expected a number in the expression, found ", value.shown()));
    return result;
  }

  static ConfigNode call(std::string_view function, const std::vector<Number>& args, const Place& place) {
    if (args.size() != 2) fail(place, str(function, " expects two arguments, found ", args.size()));
    const Number &x = args[0], &y = args[1];
    if (function == "int_div") return integer_division(x, y, place);
    if (x.is_integer && y.is_integer) {
      int64_t result = 0;
      const bool overflows = function == "multiply"   ? __builtin_mul_overflow(x.integer, y.integer, &result)
                             : function == "subtract" ? __builtin_sub_overflow(x.integer, y.integer, &result)
                                                      : __builtin_add_overflow(x.integer, y.integer, &result);
      if (overflows) fail(place, str(function, " overflows 64 bits"));
      return ConfigNode::scalar(std::to_string(result));
    }
    const double result = function == "multiply" ? x.number * y.number : function == "subtract" ? x.number - y.number : x.number + y.number;
    if (!std::isfinite(result)) fail(place, str(function, " has no finite result"));
    return ConfigNode::scalar(shortest(result));
  }

  // Rounds towards minus infinity, as NeMo-Aligner does.
  static ConfigNode integer_division(const Number& x, const Number& y, const Place& place) {
    if (!x.is_integer || !y.is_integer) fail(place, "int_div expects integers");
    if (y.integer == 0) fail(place, "int_div by zero");
    if (y.integer == -1) return call("subtract", {Number{true, 0, 0}, x}, place);
    int64_t quotient = x.integer / y.integer;
    if (x.integer % y.integer != 0 && (x.integer < 0) != (y.integer < 0)) --quotient;
    return ConfigNode::scalar(std::to_string(quotient));
  }

  ConfigNode& root_;
  const PathAliases& aliases_;
  const PathAliases& implied_;
  std::vector<std::string> chain_;  // the values being resolved, outermost first
  size_t copied_nodes_ = 0;
};

}  // namespace

void resolve_references(ConfigNode& root, const PathAliases& aliases, const PathAliases& implied) {
  Resolver(root, aliases, implied).resolve(root, "");
}

std::string escape_references(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") out += '\\';
    out += text[i];
  }
  return out;
}

}  // namespace kedge
