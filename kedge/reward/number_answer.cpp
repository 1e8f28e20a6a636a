#include "kedge/reward/number_answer.h"

#include <charconv>
#include <limits>
#include <string>

namespace kedge {
namespace {

struct Found {
  double value = 0;
  size_t end = 0;  // after its last byte
};

bool is_digit(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

bool is_letter_or_digit(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  return is_digit(text, at) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool take(std::string_view text, size_t& at, std::string_view what) {
  if (!text.substr(at).starts_with(what)) return false;
  at += what.size();
  return true;
}

// Digits with commas, a point and an exponent, without a sign.
std::optional<Found> unsigned_number(std::string_view text, size_t at) {
  std::string digits;
  while (is_digit(text, at)) {
    digits += text[at++];
    const bool three_follow = is_digit(text, at + 1) && is_digit(text, at + 2) && is_digit(text, at + 3) && !is_digit(text, at + 4);
    if (at < text.size() && text[at] == ',' && three_follow) ++at;
  }
  if (at < text.size() && text[at] == '.' && is_digit(text, at + 1)) {
    digits += digits.empty() ? "0." : ".";
    for (++at; is_digit(text, at);) digits += text[at++];
  }
  if (digits.empty()) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t end = at + 1;
    const bool negative = take(text, end, "-");
    if (!negative) take(text, end, "+");
    const size_t first = end;
    while (is_digit(text, end)) ++end;
    if (end > first && !is_letter_or_digit(text, end)) {
      digits += negative ? "e-" : "e";
      digits += text.substr(first, end - first);
      at = end;
    }
  }
  Found found{.end = at};
  if (std::from_chars(digits.data(), digits.data() + digits.size(), found.value).ec == std::errc::result_out_of_range)
    found.value = digits.find("e-") == std::string::npos ? std::numeric_limits<double>::infinity() : 0;
  return found;
}

std::optional<Found> quotient(const Found& top, const std::optional<Found>& bottom) {
  if (!bottom || bottom->value == 0) return std::nullopt;
  return Found{.value = top.value / bottom->value, .end = bottom->end};
}

// \frac{3}{4}, also as \dfrac and \tfrac.
std::optional<Found> latex_fraction(std::string_view text, size_t at) {
  if (!take(text, at, "\\frac{") && !take(text, at, "\\dfrac{") && !take(text, at, "\\tfrac{")) return std::nullopt;
  const auto top = unsigned_number(text, at);
  if (!top) return std::nullopt;
  at = top->end;
  if (!take(text, at, "}{")) return std::nullopt;
  auto whole = quotient(*top, unsigned_number(text, at));
  if (!whole || !take(text, whole->end, "}")) return std::nullopt;
  return whole;
}

// The number that begins right here.
std::optional<Found> number_at(std::string_view text, size_t at) {
  const bool after_operand = at > 0 && (is_letter_or_digit(text, at - 1) || text[at - 1] == ')' || text[at - 1] == '}');
  const auto take_dollar = [&] { return take(text, at, "$") || take(text, at, "\\$"); };
  const auto take_minus = [&] { return take(text, at, "-") || take(text, at, "\u2212"); };
  take_dollar();
  const bool negative = take_minus();
  if (negative && after_operand) return std::nullopt;
  if (negative) take_dollar();
  auto found = latex_fraction(text, at);
  if (!found) {
    found = unsigned_number(text, at);
    if (!found) return std::nullopt;
    if (found->end < text.size() && text[found->end] == '/')
      if (const auto divided = quotient(*found, unsigned_number(text, found->end + 1))) found = divided;
  }
  if (negative) found->value = -found->value;
  return found;
}

// The first byte, at or after `at`, that a number could start with.
size_t next_candidate(std::string_view text, size_t at) { return text.find_first_of("0123456789.-$\\\u2212", at); }

struct Placed {
  size_t begin = 0;
  Found found = {};
};

std::optional<Placed> first_number(std::string_view text) {
  for (size_t at = next_candidate(text, 0); at < text.size(); at = next_candidate(text, at + 1))
    if (const auto found = number_at(text, at)) return Placed{at, *found};
  return std::nullopt;
}

std::optional<Placed> last_number(std::string_view text) {
  std::optional<Placed> last;
  for (size_t at = next_candidate(text, 0); at < text.size();) {
    const auto found = number_at(text, at);
    if (found) last = Placed{at, *found};
    at = next_candidate(text, found ? found->end : at + 1);
  }
  return last;
}

std::optional<double> value_of(const std::optional<Placed>& number) { return number ? std::optional(number->found.value) : std::nullopt; }

std::optional<std::string_view> text_of_number(std::string_view text, const std::optional<Placed>& number) {
  return number ? std::optional(text.substr(number->begin, number->found.end - number->begin)) : std::nullopt;
}

}  // namespace

std::optional<double> answer_number(std::string_view text, AnswerPlace place) {
  if (place == AnswerPlace::any || place == AnswerPlace::boxed)
    if (const auto inside = boxed_text(text)) return value_of(first_number(*inside));
  if (place == AnswerPlace::any || place == AnswerPlace::hashes)
    if (const auto behind = behind_hashes(text)) return value_of(first_number(*behind));
  if (place == AnswerPlace::any || place == AnswerPlace::last) return value_of(last_number(text));
  return std::nullopt;
}

std::optional<std::string_view> first_number_text(std::string_view text) { return text_of_number(text, first_number(text)); }

std::optional<std::string_view> last_number_text(std::string_view text) { return text_of_number(text, last_number(text)); }

}  // namespace kedge
