#pragma once
// Words inside formulas: units, "and" between answers, texts that are the answer. Knows tokens, no grammar.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/reward/math/math_tokens.h"

namespace kedge {

inline constexpr size_t kLongestTextAnswer = 100;  // bytes

// A text as it is compared: lower case, one blank between words, no punctuation at its ends.
[[nodiscard]] std::string comparable_text(std::string_view text);

// The letter of a multiple choice, written B, (B), B. or B:
[[nodiscard]] std::optional<char> choice_letter(std::string_view text);

// A comma, a semicolon, "and", "or".
[[nodiscard]] bool is_list_separator(const MathToken& token);

// Does a unit begin with this token? What it follows: a number, a symbol, or something else.
[[nodiscard]] bool starts_unit(const MathToken& token, bool behind_number, bool behind_symbol);

// The factor of a word such as "million" that a token begins with; 0: none.
[[nodiscard]] int64_t scale_word(const MathToken& token);

// Words and nothing else, at least one of which is no product of letters such as xy.
[[nodiscard]] bool is_text_answer(const std::vector<MathToken>& tokens);

}  // namespace kedge
