#pragma once
// Values as text: Python's str() and repr(), and json.dumps() as transformers gives it to templates.
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

[[nodiscard]] std::string to_text(const Value& value);  // str()
[[nodiscard]] std::string repr(const Value& value);
[[nodiscard]] std::string repr_text(std::string_view text);  // of a str
[[nodiscard]] std::string repr_real(double value);           // of a float: 1e+16, 0.1, 1e-05, nan

// What may differ from json.dumps(value, ensure_ascii=False).
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
[[nodiscard]] std::string to_json(const Value& value, const JsonStyle& style);

// Appends, and ends the render if the text exceeds its memory limit.
void append(std::string& out, std::string_view piece);

// &, <, >, ' and " as HTML writes them.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace kedge::jinja
