#include "kedge/core/memory_budget.h"

#include <array>
#include <charconv>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {

int64_t memory_budget(std::string_view text, int64_t free_bytes, std::string_view where) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {
      {{"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}};
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto& [name, bytes] : kUnits) {
    if (problem != std::errc() || number <= 0 || unit != name) continue;
    if (unit.empty() && number <= 1) return static_cast<int64_t>(number * static_cast<double>(free_bytes));
    if (number * bytes >= 1 && number * bytes < 0x1p62) return static_cast<int64_t>(number * bytes);
  }
  throw UsageError(
      str(where, ": \"", text, "\" is not an amount of memory; expected bytes such as 4GiB, or a fraction of the free memory such as 0.5"));
}

}  // namespace kedge
