#include "kedge/text/jinja/jinja_text_methods.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_arguments.h"
#include "kedge/text/jinja/jinja_format.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

Value like(const Value& self, std::string text) { return {std::move(text), self.text().safe}; }

Value list_like(const Value& self, const std::vector<std::string>& parts) {
  Values items;
  for (const std::string& part : parts) items.push_back(like(self, part));
  return Value::list(std::move(items));
}

template <typename Holds>
bool all_characters(std::string_view text, const Holds& holds) {
  if (text.empty()) return false;
  for (; !text.empty(); text.remove_prefix(utf8_length(text)))
    if (!holds(utf8_decode(text))) return false;
  return true;
}

// Every character that has case has this one, and there is one.
bool has_only_case(std::string_view text, bool (*holds)(char32_t)) {
  bool any = false;
  for (; !text.empty(); text.remove_prefix(utf8_length(text))) {
    const char32_t c = utf8_decode(text);
    if (!holds(c) && py_is_cased(c)) return false;
    any = any || holds(c);
  }
  return any;
}

bool is_title_text(std::string_view text) {
  bool any = false, in_word = false;
  for (; !text.empty(); text.remove_prefix(utf8_length(text))) {
    const char32_t c = utf8_decode(text);
    const bool cased = py_is_cased(c), lower = py_is_lower(c);
    if (cased && lower != in_word) return false;
    in_word = cased;
    any = any || cased;
  }
  return any;
}

// Characters [start, end) of the text as optional arguments give them, and where they begin.
struct Window {
  std::string_view bytes;
  size_t start;   // in characters
  bool in_range;  // false: start is after the text or after the end, where not even "" is found
};

Window window_of(const Value& self, const Bound& bound, size_t first) {
  const auto length = static_cast<int64_t>(self.text().length);
  const auto bound_at = [&](size_t index, int64_t otherwise) {
    if (!bound.given(index) || bound[index].is_none()) return otherwise;
    const int64_t at = bound.integer(index);
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  const int64_t start = bound_at(first, 0), end = std::min(bound_at(first + 1, length), length);
  if (start > end) return {{}, 0, false};
  return {characters(self.text(), static_cast<size_t>(start), static_cast<size_t>(end)), static_cast<size_t>(start), true};
}

std::vector<std::string> split_white(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string> parts;
  while (true) {
    text = from_right ? py_rstrip(text) : py_lstrip(text);
    if (text.empty()) break;
    Meter::step();
    if (limit-- == 0) {
      parts.emplace_back(text);  // with the white space at its other end
      break;
    }
    size_t at = from_right ? text.size() : 0;
    if (from_right) {
      while (at > 0 && !py_is_space(utf8_decode(text.substr(last_character(text.substr(0, at)))))) at = last_character(text.substr(0, at));
      parts.emplace_back(text.substr(at));
      text = text.substr(0, at);
    } else {
      while (at < text.size() && !py_is_space(utf8_decode(text.substr(at)))) at += utf8_length(text.substr(at));
      parts.emplace_back(text.substr(0, at));
      text.remove_prefix(at);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_at(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string> parts;
  for (; limit != 0; --limit) {
    const size_t at = find_bytes(text, separator);
    if (at == npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

// From the right: the same on the mirrored bytes, so that it is linear too.
std::vector<std::string> split_at_right(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string> parts = split_at(reversed(text), reversed(separator), limit);
  for (std::string& part : parts) part = reversed(part);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

size_t find_last(std::string_view text, std::string_view part) {
  const size_t at = find_bytes(reversed(text), reversed(part));
  return at == npos ? npos : text.size() - at - part.size();
}

Value split(const Value& self, const Arguments& arguments, bool from_right) {
  const Bound bound(from_right ? "rsplit" : "split", arguments, {"sep", "maxsplit"});
  const int64_t limit = bound.integer(1, -1);
  if (!bound.given(0) || bound[0].is_none()) return list_like(self, split_white(self.bytes(), limit, from_right));
  if (bound.text(0).empty()) fail("empty separator");
  return list_like(self, from_right ? split_at_right(self.bytes(), bound.text(0), limit) : split_at(self.bytes(), bound.text(0), limit));
}

Value strip(const Value& self, const Arguments& arguments, bool left, bool right) {
  const Bound bound("strip", arguments, {""});
  if (bound.given(0) && !bound[0].is_none()) return like(self, strip_characters(self.bytes(), bound.text(0), left, right));
  const std::string_view text = self.bytes();
  return like(self, std::string(left && right ? py_strip(text) : left ? py_lstrip(text) : py_rstrip(text)));
}

Value starts_or_ends(const Value& self, const Arguments& arguments, bool at_end) {
  const Bound bound(at_end ? "endswith" : "startswith", arguments, {"", "", ""}, 1);
  const Window window = window_of(self, bound, 1);
  const auto matches = [&](const Value& part) {
    if (!part.is_text()) fail(at_end ? "endswith" : "startswith", " first arg must be str or a tuple of str, not ", type_name(part));
    if (!window.in_range || part.bytes().size() > window.bytes.size()) return false;
    return window.bytes.compare(at_end ? window.bytes.size() - part.bytes().size() : 0, part.bytes().size(), part.bytes()) == 0;
  };
  if (bound[0].is(Kind::tuple)) return std::any_of(bound[0].items().begin(), bound[0].items().end(), matches);
  return matches(bound[0]);
}

// find, rfind, index, rindex.
Value find(const Value& self, const Arguments& arguments, std::string_view name) {
  const Bound bound(name, arguments, {"", "", ""}, 1);
  const Window window = window_of(self, bound, 1);
  const std::string& part = bound.text(0);
  const bool from_right = name.front() == 'r';
  size_t at = npos;
  if (window.in_range) at = from_right ? find_last(window.bytes, part) : find_bytes(window.bytes, part);
  if (at != npos) return static_cast<int64_t>(window.start + Text(std::string(window.bytes.substr(0, at)), false).length);
  if (name.find("index") != npos) fail("substring not found");
  return -1;
}

Value count_text(const Value& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {"", "", ""}, 1);
  const Window window = window_of(self, bound, 1);
  const std::string& part = bound.text(0);
  if (!window.in_range) return 0;
  if (part.empty()) return static_cast<int64_t>(Text(std::string(window.bytes), false).length) + 1;
  int64_t found = 0;
  for (size_t at = 0; (at = find_bytes(window.bytes, part, at)) != npos; at += part.size()) ++found;
  return found;
}

Value join_text(const Value& self, const Arguments& arguments) {
  const Bound bound("join", arguments, {""}, 1);
  std::string out;
  size_t number = 0;
  const auto next = iterate(bound[0]);
  for (Value item; next(item); ++number) {
    if (!item.is_text() && !self.text().safe) fail("sequence item ", number, ": expected str instance, ", type_name(item), " found");
    if (number > 0) append(out, self.bytes());
    const bool escapes = self.text().safe && !(item.is_text() && item.text().safe);  // Markup takes in anything, escaped
    append(out, escapes ? escape_html(to_text(item)) : item.bytes());
    Meter::step();
  }
  return like(self, std::move(out));
}

Value replace(const Value& self, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"", "", "count"}, 2);
  const std::string replacement = self.text().safe && !bound[1].text().safe ? escape_html(bound.text(1)) : bound.text(1);
  return like(self, replace_text(self.bytes(), bound.text(0), replacement, bound.integer(2, -1)));
}

Value remove(const Value& self, const Arguments& arguments, bool at_end) {
  const Bound bound(at_end ? "removesuffix" : "removeprefix", arguments, {""}, 1);
  const std::string_view text = self.bytes(), part = bound.text(0);
  if (part.size() > text.size() || text.substr(at_end ? text.size() - part.size() : 0, part.size()) != part) return self;
  return like(self, std::string(at_end ? text.substr(0, text.size() - part.size()) : text.substr(part.size())));
}

Value partition(const Value& self, const Arguments& arguments, bool from_right) {
  const Bound bound("partition", arguments, {""}, 1);
  const std::string_view text = self.bytes(), separator = bound.text(0);
  if (separator.empty()) fail("empty separator");
  const size_t at = from_right ? find_last(text, separator) : find_bytes(text, separator);
  const Value empty = like(self, "");
  if (at == npos) return from_right ? Value::tuple({empty, empty, self}) : Value::tuple({self, empty, empty});
  return Value::tuple({like(self, std::string(text.substr(0, at))), like(self, std::string(separator)),
                       like(self, std::string(text.substr(at + separator.size())))});
}

std::string filler(const Bound& bound) {
  if (!bound.given(1)) return " ";
  if (Text(bound.text(1), false).length != 1) fail("The fill character must be exactly one character long");
  return bound.text(1);
}

std::string repeated(std::string_view piece, size_t count) {
  size_t total = 0;
  if (__builtin_mul_overflow(piece.size(), count, &total)) total = std::numeric_limits<size_t>::max();
  Meter::room_for(total);
  std::string out;
  while (count-- > 0) out += piece;
  return out;
}

Value justify(const Value& self, const Arguments& arguments, bool to_left) {
  const Bound bound(to_left ? "ljust" : "rjust", arguments, {"", ""}, 1);
  const auto length = static_cast<int64_t>(self.text().length);
  const std::string fill = filler(bound);
  if (bound.integer(0) <= length) return self;
  const std::string padding = repeated(fill, static_cast<size_t>(bound.integer(0) - length));
  return like(self, to_left ? self.bytes() + padding : padding + self.bytes());
}

Value zero_fill(const Value& self, const Arguments& arguments) {
  const Bound bound("zfill", arguments, {""}, 1);
  const auto length = static_cast<int64_t>(self.text().length);
  if (bound.integer(0) <= length) return self;
  const std::string& text = self.bytes();
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return like(self, text.substr(0, sign) + repeated("0", static_cast<size_t>(bound.integer(0) - length)) + text.substr(sign));
}

Value expand_tabs(const Value& self, const Arguments& arguments) {
  const Bound bound("expandtabs", arguments, {"tabsize"});
  const int64_t size = bound.integer(0, 8);
  std::string out;
  int64_t column = 0;
  for (std::string_view rest = self.bytes(); !rest.empty();) {
    const size_t bytes = utf8_length(rest);
    if (rest.front() == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      append(out, repeated(" ", static_cast<size_t>(blanks)));
      column += blanks;
    } else {
      append(out, rest.substr(0, bytes));
      column = rest.front() == '\n' || rest.front() == '\r' ? 0 : column + 1;
    }
    rest.remove_prefix(bytes);
  }
  return like(self, std::move(out));
}

Value format_map(const Value& self, const Arguments& arguments) {
  const Bound bound("format_map", arguments, {""}, 1);
  return brace_format(self, {}, &bound[0]);
}

Value center(const Value& self, const Arguments& arguments) {
  const Bound bound("center", arguments, {"", ""}, 1);
  return like(self, centered(self.text(), bound.integer(0), filler(bound)));
}

Value lines(const Value& self, const Arguments& arguments) {
  return list_like(self, split_lines(self.bytes(), Bound("splitlines", arguments, {"keepends"}).flag(0)));
}

using Method = std::function<Value(const Value&, const Arguments&)>;

Method changed(std::string (*change)(std::string_view)) {
  return [change](const Value& self, const Arguments& arguments) {
    static_cast<void>(Bound("str method", arguments, {}));
    return like(self, change(self.bytes()));
  };
}

Method asked(bool (*holds)(char32_t)) {
  return [holds](const Value& self, const Arguments& arguments) -> Value {
    static_cast<void>(Bound("str method", arguments, {}));
    return all_characters(self.bytes(), holds);
  };
}

Method judged(bool (*holds)(std::string_view)) {
  return [holds](const Value& self, const Arguments& arguments) -> Value {
    static_cast<void>(Bound("str method", arguments, {}));
    return holds(self.bytes());
  };
}

Method refused(std::string name) {
  return [name](const Value&, const Arguments&) -> Value { fail("the method str.", name, " is not supported"); };
}

bool is_ascii_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_printable_text(std::string_view text) { return text.empty() || all_characters(text, py_is_printable); }

const std::map<std::string_view, Method>& methods() {
  using V = const Value&;
  using A = const Arguments&;
  static const std::map<std::string_view, Method> table = {
      {"capitalize", changed(py_capitalize)},
      {"casefold", refused("casefold")},
      {"center", center},
      {"count", count_text},
      {"encode", refused("encode")},
      {"endswith", [](V self, A a) { return starts_or_ends(self, a, true); }},
      {"expandtabs", expand_tabs},
      {"find", [](V self, A a) { return find(self, a, "find"); }},
      {"format", [](V self, A a) { return brace_format(self, a); }},
      {"format_map", format_map},
      {"index", [](V self, A a) { return find(self, a, "index"); }},
      {"isalnum", asked(py_is_alnum)},
      {"isalpha", asked(py_is_alpha)},
      {"isascii", judged(is_ascii_text)},
      {"isdecimal", asked(py_is_decimal)},
      {"isdigit", asked(py_is_digit)},
      {"isidentifier", refused("isidentifier")},
      {"islower", judged(is_lower_text)},
      {"isnumeric", asked(py_is_numeric)},
      {"isprintable", judged(is_printable_text)},
      {"isspace", asked(py_is_space)},
      {"istitle", judged(is_title_text)},
      {"isupper", judged(is_upper_text)},
      {"join", join_text},
      {"ljust", [](V self, A a) { return justify(self, a, true); }},
      {"lower", changed(py_lower)},
      {"lstrip", [](V self, A a) { return strip(self, a, true, false); }},
      {"maketrans", refused("maketrans")},
      {"partition", [](V self, A a) { return partition(self, a, false); }},
      {"removeprefix", [](V self, A a) { return remove(self, a, false); }},
      {"removesuffix", [](V self, A a) { return remove(self, a, true); }},
      {"replace", replace},
      {"rfind", [](V self, A a) { return find(self, a, "rfind"); }},
      {"rindex", [](V self, A a) { return find(self, a, "rindex"); }},
      {"rjust", [](V self, A a) { return justify(self, a, false); }},
      {"rpartition", [](V self, A a) { return partition(self, a, true); }},
      {"rsplit", [](V self, A a) { return split(self, a, true); }},
      {"rstrip", [](V self, A a) { return strip(self, a, false, true); }},
      {"split", [](V self, A a) { return split(self, a, false); }},
      {"splitlines", lines},
      {"startswith", [](V self, A a) { return starts_or_ends(self, a, false); }},
      {"strip", [](V self, A a) { return strip(self, a, true, true); }},
      {"swapcase", changed(py_swapcase)},
      {"title", changed(py_title)},
      {"translate", refused("translate")},
      {"upper", changed(py_upper)},
      {"zfill", zero_fill},
  };
  return table;
}

}  // namespace

bool has_text_method(std::string_view name) { return methods().count(name) > 0; }

std::optional<Value> call_text_method(const Value& self, std::string_view name, const Arguments& arguments) {
  const auto method = methods().find(name);
  if (method == methods().end()) return std::nullopt;
  Meter::step_characters(self.bytes().size());
  return method->second(self, arguments);
}

std::string strip_characters(std::string_view text, std::string_view characters, bool left, bool right) {
  const auto stripped = [&](size_t at) { return characters.find(text.substr(at, utf8_length(text.substr(at)))) != npos; };
  Meter::step_bytes(text.size() * std::min<size_t>(characters.size(), 64));
  while (left && !text.empty() && stripped(0)) text.remove_prefix(utf8_length(text));
  while (right && !text.empty() && stripped(last_character(text))) text.remove_suffix(text.size() - last_character(text));
  return std::string(text);
}

std::string replace_text(std::string_view text, std::string_view old, std::string_view replacement, int64_t count) {
  std::string out;
  size_t at = 0;
  for (; count != 0; --count) {
    const size_t found = find_bytes(text, old, at);
    if (found == npos) break;
    Meter::step_bytes(replacement.size());
    append(out, text.substr(at, found - at));
    append(out, replacement);
    at = found + old.size();
    if (old.empty()) {  // before every character and at the end
      const size_t size = at < text.size() ? utf8_length(text.substr(at)) : 0;
      append(out, text.substr(at, size));
      at += size == 0 ? 1 : size;
    }
  }
  if (at < text.size()) append(out, text.substr(at));
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_length(text.substr(at));
    const size_t end = at + size + (text.substr(at, 2) == "\r\n" ? 1 : 0);
    if (py_is_line_break(utf8_decode(text.substr(at)))) {
      lines.emplace_back(text.substr(start, (keep_ends ? end : at) - start));
      start = end;
    }
    at = end;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

std::string centered(const Text& text, int64_t width, std::string_view fill) {
  const auto length = static_cast<int64_t>(text.length);
  if (width <= length) return text.bytes;
  const int64_t missing = width - length;
  const int64_t left = missing / 2 + (missing & width & 1);  // CPython puts the odd blank so
  return repeated(fill, static_cast<size_t>(left)) + text.bytes + repeated(fill, static_cast<size_t>(missing - left));
}

bool is_lower_text(std::string_view text) { return has_only_case(text, py_is_lower); }

bool is_upper_text(std::string_view text) { return has_only_case(text, py_is_upper); }

}  // namespace kedge::jinja
