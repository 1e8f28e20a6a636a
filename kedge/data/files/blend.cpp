#include "kedge/data/files/blend.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kedge/core/error.h"

namespace kedge {

Blend::Blend(std::vector<BlendPart> parts) : parts_(std::move(parts)) {
  check(!parts_.empty(), "a blend of no data sets");
  check(parts_.size() <= std::numeric_limits<uint16_t>::max(), "a blend of ", parts_.size(), " data sets; at most 65535");
  double total = 0;
  for (const BlendPart& part : parts_) {
    check(std::isfinite(part.weight) && part.weight > 0, "a blend's weight of ", part.weight, "; expected a number above 0");
    check(part.size > 0, "a blend with an empty data set");
    total += part.weight;
    size_ += part.size;
  }
  if (parts_.size() == 1) return;

  choices_.reserve(static_cast<size_t>(size_));
  std::vector<int64_t> counts(parts_.size(), 0);
  for (int64_t example = 0; example < size_; ++example) {
    if (choices_.size() % kBlock == 0) counts_before_.insert(counts_before_.end(), counts.begin(), counts.end());
    size_t chosen = 0;
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t part = 0; part < parts_.size(); ++part) {
      const double lag = parts_[part].weight / total * static_cast<double>(example + 1) - static_cast<double>(counts[part]);
      if (lag > largest) largest = lag, chosen = part;
    }
    choices_.push_back(static_cast<uint16_t>(chosen));
    ++counts[chosen];
  }
}

Blend::Pick Blend::pick(int64_t example) const {
  ensure(example >= 0 && example < size_, "example ", example, " of a blend of ", size_);
  if (parts_.size() == 1) return {0, example};
  const auto at = static_cast<size_t>(example);
  const size_t part = choices_[at];
  const auto block = choices_.begin() + static_cast<std::ptrdiff_t>(at / kBlock * kBlock);
  const int64_t before = counts_before_[at / kBlock * parts_.size() + part] +
                         std::count(block, choices_.begin() + static_cast<std::ptrdiff_t>(at), choices_[at]);
  return {part, before % parts_[part].size};
}

}  // namespace kedge
