#include "kedge/text/jinja/jinja_numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "kedge/core/utf8.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge::jinja {
namespace {

// Without white space around it, digits of every script as ASCII, underscores between digits gone; nothing if one is
// elsewhere.
std::optional<std::string> plain(std::string_view text) {
  std::string out;
  bool after_digit = false, after_underscore = false;
  for (std::string_view rest = py_strip(text); !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    const char32_t c = utf8_decode(rest);
    if (c == '_') {
      if (!after_digit) return std::nullopt;
      after_digit = false, after_underscore = true;
      continue;
    }
    const int digit = py_decimal_value(c);
    if (c >= 0x80 && digit < 0) return std::nullopt;
    const char byte = static_cast<char>(digit >= 0 ? static_cast<char32_t>('0' + digit) : c);
    const bool alnum = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    if (after_underscore && !alnum) return std::nullopt;
    out += byte;
    after_digit = alnum, after_underscore = false;
  }
  if (after_underscore) return std::nullopt;
  return out;
}

bool take_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return false;
  const bool negative = text.front() == '-';
  text.remove_prefix(1);
  return negative;
}

bool same_letters(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if ((text[i] | 0x20) != lower[i]) return false;
  return true;
}

Value round_integer(int64_t value, int64_t places) {
  if (places >= 0) return value;
  if (places < -18) return 0;
  int64_t unit = 1;
  while (places++ < 0) unit *= 10;
  const int64_t rest = value % unit, half = unit / 2;
  int64_t base = value - rest;
  const int64_t size = rest < 0 ? -rest : rest;
  if (size > half || (size == half && (base / unit) % 2 != 0))
    if (__builtin_add_overflow(base, rest < 0 ? -unit : unit, &base)) fail("an integer beyond 64 bits");
  return base;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
  const auto cleaned = plain(text);
  if (!cleaned) return std::nullopt;
  std::string_view rest = *cleaned;
  const bool negative = take_sign(rest);
  const char lead = rest.size() > 2 && rest[0] == '0' ? static_cast<char>(rest[1] | 0x20) : '\0';
  const int64_t named = lead == 'x' ? 16 : lead == 'o' ? 8 : lead == 'b' ? 2 : 0;
  if (named != 0 && (base == 0 || base == named)) {
    rest.remove_prefix(2);
    base = named;
  } else if (base == 0) {
    if (rest.size() > 1 && rest[0] == '0' && rest.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), magnitude, static_cast<int>(base));
  if (rest.empty() || end != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
  const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (error == std::errc::result_out_of_range || magnitude > most) fail("an integer beyond 64 bits");
  return static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
}

std::optional<double> parse_real(std::string_view text) {
  const auto cleaned = plain(text);
  if (!cleaned) return std::nullopt;
  std::string_view rest = *cleaned;
  const bool negative = take_sign(rest);
  double value = 0;
  if (same_letters(rest, "inf") || same_letters(rest, "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else if (same_letters(rest, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (rest.empty() || rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size() || error == std::errc::invalid_argument || rest.front() == '-') return std::nullopt;
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(rest).c_str(), nullptr);  // 0 or infinity
  }
  return negative ? -value : value;
}

Value rounded(const Value& value, int64_t places) {
  if (value.is_integral()) return round_integer(value.integer(), places);
  if (!value.is(Kind::real)) fail("type ", type_name(value), " doesn't define __round__ method");
  const double real = value.real();
  if (!std::isfinite(real) || places > 323) return real;
  if (places < -308) return std::copysign(0.0, real);
  if (places < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-places));
    return std::nearbyint(real / unit) * unit;
  }
  std::array<char, 800> text{};  // 309 digits, a point, 323 places and a sign fit
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(places), real);
  return std::strtod(text.data(), nullptr);
}

}  // namespace kedge::jinja
