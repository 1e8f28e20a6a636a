#include "kedge/reward/math/math_answer.h"

#include <algorithm>
#include <utility>

#include "kedge/reward/math/math_equal.h"
#include "kedge/reward/math/math_words.h"
#include "kedge/reward/number_answer.h"

namespace kedge {
namespace {

// Without white space, sentence ends and the marks of bold text around it.
std::string_view trimmed_answer(std::string_view text) {
  constexpr std::string_view kFront = " \t\n\r*:", kBack = " \t\n\r*:.,;";
  const size_t begin = text.find_first_not_of(kFront);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBack) - begin + 1);
}

// The first line that has anything.
std::string_view first_line(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find('\n'));
}

std::optional<std::string> last_formula_or_number(std::string_view text) {
  const auto formula = last_formula(text);
  const auto number = last_number_text(text);
  if (!formula && !number) return std::nullopt;
  if (formula && (!number || formula->data() + formula->size() > number->data())) return std::string(*formula);
  const auto behind = static_cast<size_t>(number->data() + number->size() - text.data());
  return std::string(*number) + (text.substr(behind).starts_with('%') || text.substr(behind).starts_with("\\%") ? "%" : "");
}

// B of "(B) 12", "B. because" or "option B"; the letter alone is a symbol already.
std::optional<char> chosen_letter(std::string_view answer) {
  bool is_named = false;
  for (const std::string_view word : {"option ", "Option ", "choice ", "Choice "}) {
    if (!answer.starts_with(word)) continue;
    answer.remove_prefix(word.size());
    is_named = true;
  }
  std::string plain;
  for (size_t at = 0; at < answer.size() && plain.size() < 8; ++at) {
    if (answer.substr(at).starts_with("\\text")) {
      at = std::min(answer.find('{', at), answer.size());  // \text{, \textbf{
    } else if (std::string_view(" \\{}$*~").find(answer[at]) == std::string_view::npos) {
      plain += answer[at];
    }
  }
  const bool opens = plain.starts_with('(');
  const std::string_view rest = std::string_view(plain).substr(opens ? 1 : 0);
  if (rest.empty() || rest[0] < 'A' || rest[0] > 'J') return std::nullopt;
  if (rest.size() == 1) return is_named ? std::optional(rest[0]) : std::nullopt;
  return std::string_view(opens ? ")" : ").:").find(rest[1]) == std::string_view::npos ? std::nullopt : std::optional(rest[0]);
}

MathAnswer answer_of(std::string_view text) { return {std::string(text), chosen_letter(text)}; }

// Of the words after "the answer is": the formula in them, all of them if they can be read, else the first number in them. A choice is
// named by its letter and by what it says, and either may be the right answer.
std::optional<MathAnswer> said_answer(std::string_view words) {
  const std::optional<char> choice = chosen_letter(words);
  if (const auto formula = last_formula(words)) return MathAnswer{std::string(*formula), choice ? choice : chosen_letter(*formula)};
  words = trimmed_answer(words);
  if (parse_math(words)) return MathAnswer{std::string(words), choice};
  if (const auto number = first_number_text(words)) return MathAnswer{std::string(*number), choice};
  return words.empty() ? std::nullopt : std::optional(MathAnswer{std::string(words), choice});
}

bool is_choice(const MathNode& node) {
  return node.kind == MathNode::Kind::symbol && node.name.size() == 1 && node.name[0] >= 'A' && node.name[0] <= 'J';
}

// Are they written alike, but for blanks?
bool same_letters_of(std::string_view a, std::string_view b) {
  const auto packed = [](std::string_view text) {
    std::string result;
    for (const char c : text)
      if (c != ' ' && c != '\n' && c != '\t' && c != '$') result += c;
    return result;
  };
  return packed(a) == packed(b);
}

}  // namespace

std::optional<MathAnswer> math_answer(std::string_view response, AnswerPlace place) {
  if (place == AnswerPlace::any || place == AnswerPlace::boxed)
    if (const auto inside = boxed_text(response)) return answer_of(trimmed_answer(*inside));
  if (place == AnswerPlace::any || place == AnswerPlace::hashes)
    if (const auto behind = behind_hashes(response)) return answer_of(trimmed_answer(first_line(*behind)));
  if (place == AnswerPlace::any)
    if (const auto words = behind_answer_is(response)) return said_answer(*words);
  if (place == AnswerPlace::any || place == AnswerPlace::last)
    if (const auto text = last_formula_or_number(response)) return answer_of(*text);
  return std::nullopt;
}

std::optional<RightMathAnswer> RightMathAnswer::of(std::string_view truth) {
  std::optional<std::string> text;
  if (const auto inside = boxed_text(truth)) {
    text = trimmed_answer(*inside);
  } else if (const auto behind = behind_hashes(truth)) {
    text = trimmed_answer(first_line(*behind));
  } else if (parse_math(trimmed_answer(truth))) {
    text = trimmed_answer(truth);
  } else if (const auto words = behind_answer_is(truth)) {
    if (auto said = said_answer(*words)) text = std::move(said->text);
  }
  auto node = text ? parse_math(*text) : std::nullopt;
  if (!node) return std::nullopt;
  RightMathAnswer answer;
  answer.text_ = std::move(*text);
  answer.node_ = std::move(*node);
  return answer;
}

bool RightMathAnswer::is(const MathAnswer& answer, double tolerance) const {
  if (answer.text.size() > kMaxMathBytes || answer.text.empty()) return false;
  if (same_letters_of(answer.text, text_)) return true;
  if (is_choice(node_) && answer.choice == std::optional(node_.name[0])) return true;
  const auto found = parse_math(answer.text);
  return found && same_answer(*found, node_, tolerance);
}

}  // namespace kedge
