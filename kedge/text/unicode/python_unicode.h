#pragma once
// Characters as Python's str sees them: what is a letter, a space, printable; upper and lower case. Text is valid UTF-8.
// Independent of values and templates.
#include <string>
#include <string_view>

namespace kedge {

[[nodiscard]] bool py_is_space(char32_t c);
[[nodiscard]] bool py_is_alpha(char32_t c);
[[nodiscard]] bool py_is_decimal(char32_t c);
[[nodiscard]] bool py_is_digit(char32_t c);
[[nodiscard]] bool py_is_numeric(char32_t c);
[[nodiscard]] bool py_is_alnum(char32_t c);
[[nodiscard]] bool py_is_printable(char32_t c);
[[nodiscard]] bool py_is_upper(char32_t c);
[[nodiscard]] bool py_is_lower(char32_t c);
[[nodiscard]] bool py_is_cased(char32_t c);  // upper, lower or title case
[[nodiscard]] bool py_is_line_break(char32_t c);

// 0 to 9 for a decimal digit of any script, otherwise -1.
[[nodiscard]] int py_decimal_value(char32_t c);

// The str methods of the same names.
[[nodiscard]] std::string py_upper(std::string_view text);
[[nodiscard]] std::string py_lower(std::string_view text);
[[nodiscard]] std::string py_title(std::string_view text);
[[nodiscard]] std::string py_capitalize(std::string_view text);
[[nodiscard]] std::string py_swapcase(std::string_view text);

// What is left without the white space at the front, at the end.
[[nodiscard]] std::string_view py_lstrip(std::string_view text);
[[nodiscard]] std::string_view py_rstrip(std::string_view text);
[[nodiscard]] std::string_view py_strip(std::string_view text);

}  // namespace kedge
