#include "kedge/text/jinja/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_numbers.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;

// Every kind of line end as \n, without the one at the end.
std::string normalised(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : name_(name), source_(normalised(source)), text_(source_) {
    if (utf8_valid_prefix(text_) != text_.size()) fail_at(utf8_valid_prefix(text_), "not valid UTF-8");
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t open = find_tag();
      if (open == npos) {
        add_data(text_.substr(at_));
        break;
      }
      const char kind = text_[open + 1];
      size_t inside = open + 2;
      char sign = 0;
      if (inside < text_.size() && (text_[inside] == '-' || text_[inside] == '+')) sign = text_[inside++];
      add_data(stripped_before(text_.substr(at_, open - at_), sign, kind != '{'));
      at_ = inside;
      if (kind == '#') {
        skip_comment(open);
      } else if (kind == '%' && take_raw_begin()) {
        read_raw(open);
      } else {
        read_tag(open, kind == '%');
      }
    }
    add(Token::Type::end, text_.size());
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_at(size_t at, std::string_view message) const {
    throw UsageError(str(name_, ":",
                         1 + std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(std::min(at, source_.size())), '\n'),
                         ": ", message));
  }

  void add(Token::Type type, size_t at, std::string text = {}, Value number = {}) {
    line_ += static_cast<size_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(line_at_), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    line_at_ = at;
    tokens_.push_back({type, line_, std::move(text), std::move(number)});
  }

  void add_data(std::string_view data) {
    if (!data.empty()) add(Token::Type::data, at_, std::string(data));
  }

  [[nodiscard]] size_t find_tag() const {
    for (size_t at = text_.find('{', at_); at != npos; at = text_.find('{', at + 1))
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) return at;
    return npos;
  }

  // Data before a tag: all white space goes before {%-; the blanks of the tag's line before {% and {#.
  [[nodiscard]] std::string_view stripped_before(std::string_view data, char sign, bool lstrips) const {
    if (sign == '-') return py_rstrip(data);
    if (sign == '+' || !lstrips) return data;
    const size_t line = data.rfind('\n') + 1;  // npos + 1 is 0
    if (line == 0 && !line_starts_) return data;
    return py_strip(data.substr(line)).empty() ? data.substr(0, line) : data;
  }

  // After the end of a tag: -%} takes white space, %} one newline, +%} nothing.
  void skip_after(char sign, bool trims_newline) {
    if (sign == '-') {
      at_ = text_.size() - py_lstrip(text_.substr(at_)).size();
    } else if (sign == 0 && trims_newline && at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
    }
    line_starts_ = at_ > 0 && text_[at_ - 1] == '\n';
  }

  // The first place at or after `from` that is not white space.
  [[nodiscard]] size_t skip_blanks(size_t from) const { return text_.size() - py_lstrip(text_.substr(from)).size(); }

  void skip_comment(size_t open) {
    const size_t close = text_.find("#}", at_);
    if (close == npos) fail_at(open, "a comment that does not end: no #}");
    const char sign = close > at_ && (text_[close - 1] == '-' || text_[close - 1] == '+') ? text_[close - 1] : '\0';
    at_ = close + 2;
    skip_after(sign, true);
  }

  // Is this {% raw %}? Then moves past it.
  bool take_raw_begin() {
    size_t at = skip_blanks(at_);
    if (text_.substr(at, 3) != "raw") return false;
    at = skip_blanks(at + 3);
    const char sign = text_.substr(at, 1) == "-" ? '-' : '\0';
    if (sign != 0) ++at;
    if (text_.substr(at, 2) != "%}") return false;
    at_ = at + 2;
    skip_after(sign, false);
    return true;
  }

  void read_raw(size_t open) {
    for (size_t tag = text_.find("{%", at_); tag != npos; tag = text_.find("{%", tag + 1)) {
      size_t at = tag + 2;
      const char before = text_.substr(at, 1) == "-" || text_.substr(at, 1) == "+" ? text_[at] : '\0';
      at = skip_blanks(before != 0 ? at + 1 : at);
      if (text_.substr(at, 6) != "endraw") continue;
      at = skip_blanks(at + 6);
      const char after = text_.substr(at, 1) == "-" || text_.substr(at, 1) == "+" ? text_[at] : '\0';
      if (after != 0) ++at;
      if (text_.substr(at, 2) != "%}") continue;
      add_data(stripped_before(text_.substr(at_, tag - at_), before, true));
      at_ = at + 2;
      skip_after(after, true);
      return;
    }
    fail_at(open, "a raw block that does not end: no {% endraw %}");
  }

  void read_tag(size_t open, bool block) {
    const std::string_view close = block ? "%}" : "}}";
    add(block ? Token::Type::block_begin : Token::Type::variable_begin, open);
    std::string expected;  // closing brackets, innermost last
    while (true) {
      at_ = skip_blanks(at_);
      if (at_ == text_.size()) fail_at(open, str("a tag that does not end: no ", close));
      const bool signed_close = (text_[at_] == '-' || (text_[at_] == '+' && block)) && text_.substr(at_ + 1, 2) == close;
      if (expected.empty() && (signed_close || text_.substr(at_, 2) == close)) {
        const char sign = signed_close ? text_[at_] : '\0';
        add(block ? Token::Type::block_end : Token::Type::variable_end, at_);
        at_ += signed_close ? 3 : 2;
        skip_after(sign, block);
        return;
      }
      read_token(expected);
    }
  }

  void read_token(std::string& expected) {
    const char c = text_[at_];
    if (c >= '0' && c <= '9') return read_number();
    if (c == '\'' || c == '"') return read_text();
    const char32_t point = utf8_decode(text_.substr(at_));
    if (c == '_' || py_is_alpha(point)) return read_name();
    static constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                                    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (text_.substr(at_, op.size()) != op) continue;
      balance(c, expected);
      add(Token::Type::op, at_, std::string(op));
      at_ += op.size();
      return;
    }
    fail_at(at_, str("unexpected character '", text_.substr(at_, utf8_length(text_.substr(at_))), "'"));
  }

  void balance(char c, std::string& expected) const {
    if (c == '(') expected += ')';
    if (c == '[') expected += ']';
    if (c == '{') expected += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (expected.empty()) fail_at(at_, str("unexpected '", c, "'"));
    if (expected.back() != c) fail_at(at_, str("unexpected '", c, "', expected '", expected.back(), "'"));
    expected.pop_back();
  }

  void read_name() {
    size_t end = at_;
    while (end < text_.size() && (text_[end] == '_' || py_is_alnum(utf8_decode(text_.substr(end))))) end += utf8_length(text_.substr(end));
    add(Token::Type::name, at_, std::string(text_.substr(at_, end - at_)));
    at_ = end;
  }

  // Digits with single underscores between them, from `from` on.
  [[nodiscard]] size_t digits_end(size_t from, std::string_view digits) const {
    size_t end = from;
    while (end < text_.size()) {
      const size_t next = text_[end] == '_' && end > from ? end + 1 : end;
      if (next == text_.size() || digits.find(text_[next]) == npos) break;
      end = next + 1;
    }
    return end;
  }

  void read_number() {
    static constexpr std::string_view kDecimal = "0123456789";
    const size_t whole = digits_end(at_, kDecimal);
    size_t end = whole;
    if (end + 1 < text_.size() && text_[end] == '.' && kDecimal.find(text_[end + 1]) != npos) end = digits_end(end + 1, kDecimal);
    if (end < text_.size() && (text_[end] | 0x20) == 'e') {
      const size_t sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? end + 2 : end + 1;
      if (const size_t exponent = digits_end(sign, kDecimal); exponent > sign) end = exponent;
    }
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';  // in a.0.1 the dots are attributes
    if (end > whole && !after_dot) return add_number(end, *parse_real(text_.substr(at_, end - at_)));
    add_integer(whole);
  }

  void add_integer(size_t decimal_end) {
    size_t end = decimal_end;
    const char lead = text_[at_] == '0' && at_ + 2 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : '\0';
    const std::string_view digits = lead == 'x' ? "0123456789abcdefABCDEF" : lead == 'o' ? "01234567" : lead == 'b' ? "01" : "";
    if (!digits.empty() && (digits.find(text_[at_ + 2]) != npos || text_[at_ + 2] == '_')) {
      // 0x_1f is allowed: an underscore may follow the lead.
      end = digits_end(text_[at_ + 2] == '_' ? at_ + 3 : at_ + 2, digits);
    } else if (text_[at_] == '0') {
      end = digits_end(at_, "0");
    }
    std::string plain(text_.substr(at_, end - at_));
    plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
    const std::optional<int64_t> value = integer(plain);
    if (!value) fail_at(at_, str("not a number: ", plain));
    add_number(end, *value);
  }

  [[nodiscard]] std::optional<int64_t> integer(const std::string& digits) const {
    try {
      return parse_integer(digits, 0);
    } catch (const Fault& fault) {
      fail_at(at_, fault.what());
    }
  }

  void add_number(size_t end, Value value) {
    add(Token::Type::number, at_, {}, std::move(value));
    at_ = end;
  }

  void read_text() {
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_at(at_, "a text that does not end: no closing quote");
    add(Token::Type::text, at_, unescaped(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
  }

  [[nodiscard]] std::string unescaped(std::string_view text) const {
    static constexpr std::string_view kLetters = "\\'\"abfnrtv";
    static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    while (!text.empty()) {
      if (text.front() != '\\') {
        out += text.front();
        text.remove_prefix(1);
        continue;
      }
      const char c = text[1];  // there is one: a backslash never comes last
      if (const size_t which = kLetters.find(c); which != npos) {
        out += kMeanings[which];
        text.remove_prefix(2);
      } else if (c == '\n') {
        text.remove_prefix(2);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        text.remove_prefix(2);
        append_point(out, text, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
      } else if (c >= '0' && c <= '7') {
        text.remove_prefix(1);
        append_point(out, text, 3, 8);
      } else if (c == 'N') {
        fail_at(at_, "the escape \\N{...} is not supported");
      } else {
        append_unknown(out, text);
      }
    }
    return out;
  }

  // Up to `most` digits of an escape; all of them are required in base 16.
  void append_point(std::string& out, std::string_view& text, size_t most, unsigned base) const {
    char32_t point = 0;
    size_t count = 0;
    for (; count < most && !text.empty(); ++count, text.remove_prefix(1)) {
      const char c = text.front();
      const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
      if (digit >= static_cast<int>(base)) break;
      point = point * base + static_cast<char32_t>(digit);
    }
    if (base == 16 && count < most) fail_at(at_, "a truncated \\x, \\u or \\U escape");
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) fail_at(at_, "an escape that names no character");
    utf8_append(out, point);
  }

  // An escape that means nothing stays as it is. Jinja writes a character beyond ASCII as an escape of its own before it looks
  // for escapes, so after a backslash that one is split.
  static void append_unknown(std::string& out, std::string_view& text) {
    out += '\\';
    text.remove_prefix(1);
    const char32_t point = utf8_decode(text);
    const size_t size = utf8_length(text);
    if (point < 0x80) {
      out += text.substr(0, size);
    } else {
      static constexpr std::string_view kHex = "0123456789abcdef";
      const size_t digits = point < 0x100 ? 2 : point < 0x10000 ? 4 : 8;
      out += digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
      for (size_t i = digits; i-- > 0;) out += kHex[(point >> (4 * i)) & 0xFU];
    }
    text.remove_prefix(size);
  }

  std::string_view name_;
  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  bool line_starts_ = true;  // is the next token at the start of a line?
  size_t line_ = 1, line_at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, std::string_view name) { return Lexer(source, name).run(); }

}  // namespace kedge::jinja
