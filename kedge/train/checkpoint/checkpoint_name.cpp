#include "kedge/train/checkpoint/checkpoint_name.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// A number of characters in a format; none if it is not one, or absurd.
std::optional<int> count_in(std::string_view text) {
  uint32_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_count = problem == std::errc() && end == text.data() + text.size() && count <= 20;
  return is_count ? std::optional(static_cast<int>(count)) : std::nullopt;
}

// Two of Python's formats. ".3f": so many digits after the point. "d", "4d", "04d": the nearest integer, of at least so many characters.
// Without a format, integers are written as they are.
std::string shown(double value, std::string_view format, std::string_view where) {
  std::optional<int> width = 0, digits = 6;
  if (format.ends_with('d')) {
    digits = 0;
    if (format.size() > 1) width = count_in(format.substr(0, format.size() - 1));
  } else if (!format.empty()) {
    digits = format.starts_with('.') && format.ends_with('f') ? count_in(format.substr(1, format.size() - 2)) : std::nullopt;
  }
  check(width && digits, where, ": \"", format, "\" is not a format; expected one such as .3f or 04d");
  if (std::isnan(value)) return "nan";
  if (format.empty() && value == std::floor(value) && std::abs(value) < 0x1p53) return std::to_string(static_cast<int64_t>(value));
  char text[400];
  const int length = std::snprintf(text, sizeof text, format.starts_with('0') ? "%0*.*f" : "%*.*f", *width, *digits, value);
  return {text, static_cast<size_t>(length)};
}

}  // namespace

std::string checkpoint_name(std::string_view pattern, const std::map<std::string, double>& numbers, std::string_view where) {
  std::string name;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      name += pattern[at++];
      continue;
    }
    const size_t end = pattern.find('}', at);
    check(end != std::string_view::npos, where, ": \"", pattern, "\" opens a { that is never closed");
    const std::string_view inside = pattern.substr(at + 1, end - at - 1);
    const size_t colon = inside.find(':');
    const std::string key(inside.substr(0, colon));
    check(!key.empty(), where, ": \"", pattern, "\" has braces without a name");
    const auto found = numbers.find(key);
    const double value = found == numbers.end() ? std::nan("") : found->second;
    name += key + "=" + shown(value, colon == std::string_view::npos ? "" : inside.substr(colon + 1), where);
    at = end + 1;
  }
  check(!name.empty() && name.find('/') == std::string::npos && name.front() != '.', where, ": \"", name,
        "\" is not a valid name for a checkpoint's folder");
  return name;
}

}  // namespace kedge
