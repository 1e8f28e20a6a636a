#include "kedge/reward/math/math_words.h"

#include <algorithm>
#include <array>

namespace kedge {
namespace {

using TokenKind = MathToken::Kind;

// Units that may follow a number without a blank; behind a blank any word of three letters may.
constexpr std::array<std::string_view, 38> kUnits = {"cm",  "mm", "km",  "ft",  "in",  "kg",  "mg", "lb",  "lbs", "oz",  "ml", "mL", "cc",
                                                     "mph", "hr", "hrs", "min", "sec", "ms",  "Hz", "kHz", "rad", "deg", "th", "st", "nd",
                                                     "rd",  "am", "pm",  "AM",  "PM",  "USD", "yd", "mi",  "sq",  "cu",  "kW", "kWh"};
constexpr std::array<std::string_view, 8> kUnitLetters = {"m", "g", "s", "h", "L", "l", "N", "J"};
constexpr std::array<std::string_view, 6> kShortTexts = {"yes", "no", "odd", "Yes", "No", "Odd"};

bool is_listed(std::string_view name, auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); }

bool is_letter_of_text(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string comparable_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '~';
    if (is_space && (result.empty() || result.back() == ' ')) continue;
    result += is_space ? ' ' : (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  constexpr std::string_view kEnds = " .,;:!?'\"()*";
  const size_t begin = result.find_first_not_of(kEnds);
  if (begin == std::string::npos) return "";
  return result.substr(begin, result.find_last_not_of(kEnds) - begin + 1);
}

std::optional<char> choice_letter(std::string_view text) {
  std::optional<char> letter;
  for (const char c : text) {
    if (is_letter_of_text(c)) {
      if (letter) return std::nullopt;
      letter = c;
    } else if (std::string_view(" ().:").find(c) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  return letter;
}

bool is_list_separator(const MathToken& token) {
  if (token.is_sign(",") || token.is_sign(";") || token.is_command("vee")) return true;
  if (token.kind != TokenKind::word && token.kind != TokenKind::text) return false;
  const std::string text = comparable_text(token.text);
  return text == "and" || text == "or" || (token.kind == TokenKind::text && text.empty());
}

bool starts_unit(const MathToken& token, bool behind_number, bool behind_symbol) {
  if (is_list_separator(token)) return false;
  if (token.kind == TokenKind::text) return true;
  if (token.is_command("min")) return behind_number;
  if (token.kind != TokenKind::word || behind_symbol) return false;
  if (is_listed(token.text, kUnits) || (token.is_spaced && token.text.size() >= 3)) return true;
  return token.is_spaced && is_listed(token.text, kUnitLetters) && behind_number;
}

int64_t scale_word(const MathToken& token) {
  if (token.kind != TokenKind::word && token.kind != TokenKind::text) return 0;
  const std::string text = comparable_text(token.text);
  const std::string_view first = std::string_view(text).substr(0, text.find(' '));
  if (first == "thousand") return 1'000;
  if (first == "million") return 1'000'000;
  if (first == "billion") return 1'000'000'000;
  return first == "trillion" ? 1'000'000'000'000 : 0;
}

bool is_text_answer(const std::vector<MathToken>& tokens) {
  bool has_word = false;
  size_t num_words = 0;
  for (const MathToken& token : tokens) {
    if (token.kind == TokenKind::sign) {
      if (std::string_view(".,'-:()\"!?&").find(token.text) == std::string_view::npos) return false;
      continue;
    }
    if (token.kind != TokenKind::word && token.kind != TokenKind::text) return false;
    if (is_list_separator(token)) continue;
    if (token.text.find_first_of("0123456789=+^$\\") != std::string::npos) return false;
    ++num_words;
    const auto num_letters = std::count_if(token.text.begin(), token.text.end(), is_letter_of_text);
    const bool is_no_product = num_letters > 1 && (token.kind == TokenKind::text || num_words > 1);
    has_word = has_word || num_letters > 3 || is_no_product || is_listed(token.text, kShortTexts);
  }
  return has_word;
}

}  // namespace kedge
