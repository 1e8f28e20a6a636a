#include "kedge/text/jinja/jinja_print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kedge/core/utf8.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

void append_hex(std::string& out, std::string_view lead, uint32_t value, size_t digits) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += lead;
  while (digits-- > 0) out += kHex[(value >> (4 * digits)) & 0xFU];
}

void write_repr(std::string& out, const Value& value);

template <typename Items, typename Write>
void write_items(std::string& out, const Items& items, const Write& write) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) append(out, ", ");
    first = false;
    write(item);
  }
}

void write_view(std::string& out, const View& view, const std::string& type) {
  append(out, type + "([");
  write_items(out, view.dict->items, [&](const auto& pair) {
    if (view.what == View::What::items) {
      append(out, "("), write_repr(out, pair.first), append(out, ", "), write_repr(out, pair.second), append(out, ")");
    } else {
      write_repr(out, view.what == View::What::keys ? pair.first : pair.second);
    }
  });
  append(out, "])");
}

void write_dict(std::string& out, const std::vector<std::pair<Value, Value>>& pairs) {
  append(out, "{");
  write_items(out, pairs, [&](const auto& pair) { write_repr(out, pair.first), append(out, ": "), write_repr(out, pair.second); });
  append(out, "}");
}

void write_namespace(std::string& out, const Namespace& space) {
  // A namespace may hold itself, by name or through others.
  thread_local size_t depth = 0;
  if (depth > 50) fail("a namespace that holds itself has no text");
  ++depth;
  try {
    std::vector<std::pair<Value, Value>> pairs;
    for (const auto& [name, value] : space.attributes) pairs.emplace_back(name, value);
    append(out, "<Namespace ");
    write_dict(out, pairs);
    append(out, ">");
  } catch (...) {
    --depth;
    throw;
  }
  --depth;
}

void write_repr(std::string& out, const Value& value) {
  Meter::step();
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
      return append(out, "Undefined");
    case Kind::none:
      return append(out, "None");
    case Kind::boolean:
      return append(out, value.boolean() ? "True" : "False");
    case Kind::integer:
      return append(out, std::to_string(value.integer()));
    case Kind::real:
      return append(out, repr_real(value.real()));
    case Kind::text:
      if (value.text().safe) return append(out, "Markup(" + repr_text(value.bytes()) + ")");
      return append(out, repr_text(value.bytes()));
    case Kind::list:
      append(out, "[");
      write_items(out, value.items(), [&](const Value& item) { write_repr(out, item); });
      return append(out, "]");
    case Kind::tuple:
      append(out, "(");
      write_items(out, value.items(), [&](const Value& item) { write_repr(out, item); });
      return append(out, value.items().size() == 1 ? ",)" : ")");
    case Kind::dict:
      return write_dict(out, value.dict()->items);
    case Kind::range:
      append(out, str("range(", value.range().start, ", ", value.range().stop));
      return append(out, value.range().step == 1 ? ")" : str(", ", value.range().step, ")"));
    case Kind::view:
      return write_view(out, value.view(), type_name(value));
    case Kind::object:
      if (value.object().repr) return append(out, value.object().repr());
      break;
    case Kind::space:
      return write_namespace(out, value.space());
    case Kind::iterator:
      break;
  }
  fail("printing a ", type_name(value), ", whose text in Python is a memory address");
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, size_t level) {
    Meter::step();
    switch (value.kind()) {
      case Kind::none:
        return append(out, "null");
      case Kind::boolean:
        return append(out, value.boolean() ? "true" : "false");
      case Kind::integer:
        return append(out, std::to_string(value.integer()));
      case Kind::real:
        return append(out, number(value.real()));
      case Kind::text:
        return write_text(value.bytes());
      case Kind::list:
      case Kind::tuple:
        return write_between("[", "]", value.items(), level, [&](const Value& item) { write(item, level + 1); });
      case Kind::dict:
        return write_dict(*value.dict(), level);
      default:
        fail("Object of type ", type_name(value), " is not JSON serializable");
    }
  }

  std::string out;

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return repr_real(value);
  }

  void new_line(size_t level) {
    if (!style_.indented) return;
    append(out, "\n");
    for (size_t i = 0; i < level; ++i) append(out, style_.indent);
  }

  template <typename Items, typename Write>
  void write_between(std::string_view open, std::string_view close, const Items& items, size_t level, const Write& write_item) {
    append(out, open);
    bool first = true;
    for (const auto& item : items) {
      if (!first) append(out, style_.item_separator);
      first = false;
      new_line(level + 1);
      write_item(item);
    }
    if (!first) new_line(level);
    append(out, close);
  }

  void write_dict(const Dict& dict, size_t level) {
    auto pairs = dict.items;
    if (style_.sort_keys) std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return less(a.first, b.first); });
    write_between("{", "}", pairs, level, [&](const auto& pair) {
      write_text(key(pair.first));
      append(out, style_.key_separator);
      write(pair.second, level + 1);
    });
  }

  static std::string key(const Value& value) {
    if (value.is_text()) return value.bytes();
    if (value.is(Kind::real)) return number(value.real());
    if (value.is(Kind::integer)) return std::to_string(value.integer());
    if (value.is(Kind::boolean)) return value.boolean() ? "true" : "false";
    if (value.is_none()) return "null";
    fail("keys must be str, int, float, bool or None, not ", type_name(value));
  }

  void write_text(std::string_view text) {
    std::string quoted = "\"";
    Meter::room_for(text.size());
    Meter::step_characters(text.size());
    while (!text.empty()) {
      const size_t length = utf8_length(text);
      write_character(quoted, utf8_decode(text), text.substr(0, length));
      text.remove_prefix(length);
    }
    append(out, quoted + "\"");
  }

  void write_character(std::string& quoted, char32_t c, std::string_view bytes) const {
    static constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kLetters = "\"\\nrtfb";
    if (const size_t at = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos; at != std::string_view::npos) {
      quoted += '\\', quoted += kLetters[at];
    } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
      append_hex(quoted, "\\u", c, 4);
    } else if (style_.ensure_ascii && c >= 0x10000) {
      append_hex(quoted, "\\u", 0xD800 + ((c - 0x10000) >> 10U), 4);
      append_hex(quoted, "\\u", 0xDC00 + ((c - 0x10000) & 0x3FFU), 4);
    } else {
      quoted += bytes;
    }
  }

  JsonStyle style_;
};

}  // namespace

void append(std::string& out, std::string_view piece) {
  Meter::room_for(out.size() + piece.size());
  out += piece;
}

std::string to_text(const Value& value) {
  if (value.is_text()) return value.bytes();
  if (value.is_undefined()) return "";
  return repr(value);
}

std::string repr(const Value& value) {
  std::string out;
  write_repr(out, value);
  return out;
}

std::string repr_text(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  Meter::room_for(text.size());
  Meter::step_characters(text.size());
  while (!text.empty()) {
    const char32_t c = utf8_decode(text);
    const size_t length = utf8_length(text);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\', out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (py_is_printable(c)) {
      out += text.substr(0, length);
    } else if (c < 0x100) {
      append_hex(out, "\\x", c, 2);
    } else if (c < 0x10000) {
      append_hex(out, "\\u", c, 4);
    } else {
      append_hex(out, "\\U", c, 8);
    }
    text.remove_prefix(length);
  }
  out += quote;
  return out;
}

std::string repr_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view shortest_form(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t e = shortest_form.find('e');
  const int exponent = std::atoi(shortest_form.data() + e + 1);
  if (exponent < -4 || exponent >= 16) return std::string(shortest_form);
  const bool negative = shortest_form.front() == '-';
  std::string digits(1, shortest_form[negative ? 1 : 0]);
  if (e > (negative ? 2U : 1U)) digits += shortest_form.substr(negative ? 3 : 2, e - (negative ? 3 : 2));
  std::string out = negative ? "-" : "";
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto before_point = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= before_point) return out + digits + std::string(before_point - digits.size(), '0') + ".0";
  return out + digits.substr(0, before_point) + "." + digits.substr(before_point);
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const std::string_view piece = c == '&'    ? "&amp;"
                                   : c == '<'  ? "&lt;"
                                   : c == '>'  ? "&gt;"
                                   : c == '\'' ? "&#39;"
                                   : c == '"'  ? "&#34;"
                                               : std::string_view(&c, 1);
    out += piece;
  }
  return out;
}

}  // namespace kedge::jinja
