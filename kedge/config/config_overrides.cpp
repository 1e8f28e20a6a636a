#include "kedge/config/config_overrides.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Is there a backslash that takes the meaning from the next character? These are Hydra's; before another one it is text: \n, \d, \${.
bool is_escape(std::string_view text, size_t at) {
  return text[at] == '\\' && at + 1 < text.size() && std::string_view("\\=,:()[]{} \t").find(text[at + 1]) != std::string_view::npos;
}

// Without escapes, and without the blanks around it.
ConfigNode plain(std::string_view text) {
  std::string value;
  size_t end = 0;  // of `value` without the blanks at its end
  for (size_t at = 0; at < text.size(); ++at) {
    const bool escaped = is_escape(text, at);
    if (escaped) ++at;
    const bool is_text = escaped || !is_blank(text[at]);
    if (is_text || end > 0) value += text[at];
    if (is_text) end = value.size();
  }
  value.resize(end);
  ConfigNode node = ConfigNode::scalar(std::move(value));
  if (is_null_word(node.text)) node.kind = ConfigNode::Kind::null;
  return node;
}

// A recursive reader of one value. `[` and `{` nest; inside them plain text ends at a comma or a closing bracket.
class ValueReader {
 public:
  ValueReader(std::string_view text, std::string_view whole) : text_(text), whole_(whole) {}

  ConfigNode read() {
    skip_blanks();
    const char first = peek();
    ConfigNode node;
    if (first == '[' || first == '{') {
      node = nested(0);
    } else if (first == '"' || first == '\'') {
      const size_t start = at_;
      node = quoted();
      skip_blanks();
      if (at_ != text_.size()) {  // text such as "a" or 'b' is plain after all
        node = plain(text_.substr(start));
        at_ = text_.size();
      }
    } else {
      node = plain(text_);
      at_ = text_.size();
    }
    skip_blanks();
    if (at_ != text_.size()) fail(str("unexpected \"", text_.substr(at_), "\" after the value"));
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UsageError(str(kCommandLine, ": ", whole_, ": ", what)); }
  // For a text in braces, such as a template.
  [[nodiscard]] std::string quoting_hint() const {
    return str("; { opens a map, so a text that starts with it needs quotes inside the shell's: '",
               whole_.substr(0, whole_.size() - text_.size()), "\"", text_, "\"'");
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  ConfigNode nested(int depth) {
    if (depth > static_cast<int>(kMaxConfigDepth)) fail(str("nested deeper than ", kMaxConfigDepth, " levels"));
    skip_blanks();
    if (peek() == '[') return list(depth);
    if (peek() == '{') return map(depth);
    if (peek() == '"' || peek() == '\'') return quoted();
    return plain(until(",]}"));
  }

  ConfigNode list(int depth) {
    ConfigNode node = ConfigNode::list({});
    ++at_;
    for (skip_blanks(); peek() != ']'; skip_blanks()) {
      node.items.push_back(nested(depth + 1));
      separator(']');
    }
    ++at_;
    return node;
  }

  ConfigNode map(int depth) {
    ConfigNode node = ConfigNode::map();
    ++at_;
    for (skip_blanks(); peek() != '}'; skip_blanks()) {
      const bool is_quoted = peek() == '"' || peek() == '\'';
      std::string key = is_quoted ? quoted().text : plain(until(":,}")).text;
      skip_blanks();
      if (peek() != ':') fail(str("expected a colon after key \"", key, "\"", depth == 0 ? quoting_hint() : ""));
      ++at_;
      if (key.empty()) fail("expected a key before the colon");
      if (node.member(key) != nullptr) fail(str("key \"", key, "\" occurs twice"));
      node.members.emplace_back(std::move(key), nested(depth + 1));
      separator('}');
    }
    ++at_;
    return node;
  }

  void separator(char closing) {
    skip_blanks();
    if (peek() == ',') {
      ++at_;
    } else if (peek() != closing) {
      fail(str("expected a comma or ", closing));
    }
  }

  ConfigNode quoted() {
    const char quote = peek();
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == quote || text_[at_ + 1] == '\\')) ++at_;
      text += text_[at_];
    }
    if (at_ >= text_.size()) fail(str("no closing ", quote));
    ++at_;
    return ConfigNode::scalar(std::move(text), true);
  }

  // Plain text up to one of `ends` that is not escaped, or the end; references ${...} are taken whole.
  std::string_view until(std::string_view ends) {
    const size_t start = at_;
    int open_references = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_.substr(at_, 2) == "${") ++open_references;
      if (is_escape(text_, at_)) {
        ++at_;
      } else if (open_references > 0 && text_[at_] == '}') {
        --open_references;
      } else if (open_references == 0 && ends.find(text_[at_]) != std::string_view::npos) {
        break;
      }
    }
    return text_.substr(start, at_ - start);
  }

  std::string_view text_;
  std::string_view whole_;
  size_t at_ = 0;
};

void mark(ConfigNode& node, bool added) {
  node.where = {kCommandLine, 0};
  node.added = added;
  for (ConfigNode& item : node.items) mark(item, added);
  for (auto& [name, value] : node.members) mark(value, added);
}

bool is_key(std::string_view key) {
  const auto is_key_char = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !key.empty() && key.front() != '.' && key.back() != '.' && key.find("..") == std::string_view::npos &&
         std::all_of(key.begin(), key.end(), is_key_char);
}

}  // namespace

bool is_override(std::string_view text) {
  while (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (!text.empty() && text[0] == '~') return true;
  return is_key(text.substr(0, std::min(text.size(), text.find('=')))) && text.find('=') != std::string_view::npos;
}

Override parse_override(std::string_view text) {
  Override result;
  const std::string_view whole = text;
  check(utf8_valid_prefix(text) == text.size(), kCommandLine, ": an override is not UTF-8: ", utf8_replace_invalid(text));
  if (text.substr(0, 2) == "++") {
    result.kind = OverrideKind::set_or_add;
    text.remove_prefix(2);
  } else if (text.substr(0, 1) == "+") {
    result.kind = OverrideKind::add;
    text.remove_prefix(1);
  } else if (text.substr(0, 1) == "~") {
    result.kind = OverrideKind::remove;
    text.remove_prefix(1);
  }
  const size_t equals = text.find('=');
  const bool has_value = equals != std::string_view::npos;
  result.key = std::string(text.substr(0, equals));
  check(has_value != (result.kind == OverrideKind::remove) && is_key(result.key), kCommandLine, ": \"", whole,
        "\" is not an override; expected key=value, +key=value, ++key=value or ~key");
  if (has_value) {
    result.value = ValueReader(text.substr(equals + 1), whole).read();
    mark(result.value, result.kind != OverrideKind::change);
  }
  return result;
}

}  // namespace kedge
