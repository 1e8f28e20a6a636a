#pragma once
// Unicode normal forms, lower case and graphemes of valid UTF-8, as the `tokenizers` package has them. The only part that uses utf8proc;
// if that is not installed, no_normal_form.cpp handles text that no form would change and rejects the rest.
#include <string>
#include <string_view>

#include "kedge/text/unicode/unicode.h"

namespace kedge {

[[nodiscard]] std::string to_normal_form(std::string_view text, NormalForm form);

// Character by character, without regard to neighbours: no final sigma.
[[nodiscard]] std::string to_lower_case(std::string_view text);

// Bytes of the first grapheme (a character with the marks upon it) of text that is not empty.
[[nodiscard]] size_t grapheme_length(std::string_view text);

}  // namespace kedge
