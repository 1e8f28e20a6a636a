#include "cli/text/ordered_output.h"

namespace kedge::cli {

void LineOrder::expect(int64_t index, int64_t num_lines) {
  if (!in_order_) return;
  for (int64_t number = 0; number < num_lines; ++number) lines_[{index, number}] = std::nullopt;
}

void LineOrder::ready(int64_t index, int64_t number, Json line) {
  if (!in_order_) return print_(line);
  lines_.at({index, number}) = std::move(line);
  while (!lines_.empty() && lines_.begin()->second) {
    const auto first = lines_.extract(lines_.begin());
    print_(*first.mapped());
  }
}

void LineOrder::finish() {
  for (const auto& [place, line] : std::exchange(lines_, {}))
    if (line) print_(*line);
}

}  // namespace kedge::cli
