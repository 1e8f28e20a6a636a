#include "kedge/inspect/metrics_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kedge {
namespace {

constexpr double kLargestStep = 1e15;  // below, every integer is exact as a double

// Digits from a place on; the place after them.
size_t behind_digits(std::string_view text, size_t at) { return std::min(text.size(), text.find_first_not_of("0123456789", at)); }

// As JSON writes numbers: no plus, no zero ahead, digits on both sides of a point.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = at;
  at = behind_digits(text, at);
  if (at == whole || (text[whole] == '0' && at > whole + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const size_t digits = at + 1;
    at = behind_digits(text, digits);
    if (at == digits) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at += 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) at += 1;
    const size_t digits = at;
    at = behind_digits(text, digits);
    if (at == digits) return false;
  }
  return at == text.size();
}

}  // namespace

bool FlatLine::read(std::string_view line) {
  rest_ = line;
  members_.clear();
  if (!take('{')) return false;
  do {
    const std::optional<std::string_view> name = take_name();
    const std::optional<double> value = name && take(':') ? take_number() : std::nullopt;
    if (!value) return false;
    members_.emplace_back(*name, *value);
  } while (take(','));
  return take('}') && rest_.empty() && members_.size() >= 2 && members_[0].first == "step" && members_[1].first == "time" &&
         members_[0].second >= 0 && members_[0].second < kLargestStep && members_[0].second == std::floor(members_[0].second);
}

bool FlatLine::take(char wanted) {
  while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  if (!rest_.starts_with(wanted)) return false;
  rest_.remove_prefix(1);
  while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  return true;
}

std::optional<std::string_view> FlatLine::take_name() {
  if (!rest_.starts_with('"')) return std::nullopt;
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  const auto end = std::find_if_not(rest_.begin() + 1, rest_.end(), is_plain);
  const std::string_view name = rest_.substr(1, static_cast<size_t>(end - rest_.begin()) - 1);
  rest_.remove_prefix(1 + name.size());
  if (!rest_.starts_with('"')) return std::nullopt;
  rest_.remove_prefix(1);
  return name;
}

std::optional<double> FlatLine::take_number() {
  const std::string_view token = rest_.substr(0, rest_.find_first_not_of("0123456789+-.eE"));
  if (!is_json_number(token)) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  rest_.remove_prefix(token.size());
  return value;
}

}  // namespace kedge
