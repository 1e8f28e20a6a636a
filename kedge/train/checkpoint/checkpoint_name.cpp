#include "kedge/train/checkpoint/checkpoint_name.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// A format such as ".3f": this many digits after the point. Without one, integers are written as they are.
std::string shown(double value, std::string_view format, std::string_view where) {
  if (std::isnan(value)) return "nan";
  int digits = 6;
  if (format.empty()) {
    if (value == std::floor(value) && std::abs(value) < 0x1p53) return std::to_string(static_cast<int64_t>(value));
  } else {
    const char* last = format.data() + format.size() - 1;
    const auto [end, problem] = std::from_chars(format.data() + 1, last, digits);
    check(
        format.size() >= 3 && format.front() == '.' && *last == 'f' && problem == std::errc() && end == last && digits >= 0 && digits <= 17,
        where, ": \"", format, "\" is not a format; expected one such as .3f");
  }
  char text[400];
  const int length = std::snprintf(text, sizeof text, "%.*f", digits, value);
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
