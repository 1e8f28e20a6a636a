#pragma once
// A template's text as tokens: data, and the contents of {{ }}, {% %}. Comments and white space are removed, whitespace
// control (-, +, trim_blocks, lstrip_blocks) is applied. Independent of the grammar.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

struct Token {
  enum class Type { data, block_begin, block_end, variable_begin, variable_end, name, text, number, op, end };
  Type type;
  size_t line;
  std::string text;  // data; a name; an operator; what a text literal says
  Value number;      // of a number literal

  [[nodiscard]] bool is_op(std::string_view op) const { return type == Type::op && text == op; }
  [[nodiscard]] bool is_name(std::string_view name) const { return type == Type::name && text == name; }
};

// The last token is of type `end`. Errors are UsageErrors: "NAME:LINE: ...".
[[nodiscard]] std::vector<Token> tokenize(std::string_view source, std::string_view name);

}  // namespace kedge::jinja
