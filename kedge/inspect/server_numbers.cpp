#include "kedge/inspect/server_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kedge {
namespace {

constexpr size_t kMostNumbers = 256;

}  // namespace

std::vector<ServerNumber> read_server_numbers(std::string_view text) {
  std::vector<ServerNumber> numbers;
  while (!text.empty() && numbers.size() < kMostNumbers) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t space = line.rfind(' ');
    if (!line.starts_with("kedge_") || space == std::string_view::npos) continue;
    ServerNumber number;
    const std::string_view what = line.substr(0, space), value = line.substr(space + 1);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number.value);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number.value)) continue;
    const size_t brace = what.find('{');
    number.name = what.substr(0, brace);
    if (brace != std::string_view::npos) {
      if (!what.ends_with('}')) continue;
      number.labels = what.substr(brace + 1, what.size() - brace - 2);
    }
    numbers.push_back(std::move(number));
  }
  return numbers;
}

}  // namespace kedge
