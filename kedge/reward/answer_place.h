#pragma once
// Where a text gives its answer, as in data sets of maths problems. Independent of rewards, and of what an answer is.
#include <optional>
#include <string_view>

namespace kedge {

// The text after the last "####", the content of the last \boxed{...}, the last number (or formula) of the text; any: the first of boxed
// and hashes whose mark occurs, else the last.
enum class AnswerPlace { any, last, hashes, boxed };

// The content of the last \boxed{...} or \fbox{...}, with its inner braces; up to the end of the text if it is not closed.
[[nodiscard]] std::optional<std::string_view> boxed_text(std::string_view text);

// What follows the last "####".
[[nodiscard]] std::optional<std::string_view> behind_hashes(std::string_view text);

// The rest of the sentence or line behind the last "answer is" or "answer:", whatever the case of its letters.
[[nodiscard]] std::optional<std::string_view> behind_answer_is(std::string_view text);

// The content of the last formula: $...$, $$...$$, \(...\) or \[...\]. A dollar before a digit without a partner is money, not a formula.
[[nodiscard]] std::optional<std::string_view> last_formula(std::string_view text);

}  // namespace kedge
