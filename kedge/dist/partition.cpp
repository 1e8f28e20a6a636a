#include "kedge/dist/partition.h"

#include <algorithm>
#include <numeric>

#include "kedge/core/error.h"

namespace kedge {

Share share_of(int64_t size, int rank, int num_ranks) {
  ensure(rank >= 0 && rank < num_ranks, "rank ", rank, " of ", num_ranks);
  return {size * rank / num_ranks, size * (rank + 1) / num_ranks};
}

std::vector<int64_t> share_by_size(std::span<const int64_t> sizes, int rank, int num_ranks) {
  std::vector<size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<int64_t> totals(static_cast<size_t>(num_ranks), 0), own;
  for (const size_t place : by_size) {
    const auto least = std::min_element(totals.begin(), totals.end());
    *least += sizes[place];
    if (least - totals.begin() == rank) own.push_back(static_cast<int64_t>(place));
  }
  std::sort(own.begin(), own.end());
  return own;
}

}  // namespace kedge
