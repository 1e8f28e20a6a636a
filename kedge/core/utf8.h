#pragma once
// The shape of UTF-8: what is valid, and how a code point is written. Independent of character properties.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

// Bytes of the well-formed character at the front of `text` (1 to 4); 0 when there is none. Overlong forms, surrogates and
// values above U+10FFFF are not well-formed.
[[nodiscard]] size_t utf8_length(std::string_view text);

// How many bytes at the front are valid; equals text.size() when all are.
[[nodiscard]] size_t utf8_valid_prefix(std::string_view text);

// Each byte that belongs to no valid character becomes U+FFFD, but bytes that start a character and do not finish it become one
// together, as in Rust and Python; everything else stays.
[[nodiscard]] std::string utf8_replace_invalid(std::string_view text);

// The code point at the front of valid text.
[[nodiscard]] char32_t utf8_decode(std::string_view text);

// Without the characters that steer a terminal: all controls but the line feed and the tab. Bytes that are not UTF-8 stay.
[[nodiscard]] std::string utf8_without_controls(std::string_view text);

void utf8_append(std::string& out, char32_t code_point);

}  // namespace kedge
