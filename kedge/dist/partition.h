#pragma once
// Which rank takes which part.
#include <cstdint>
#include <span>
#include <vector>

namespace kedge {

// Part `rank` of `size` items cut into `num_ranks` neighbouring parts whose sizes differ by at most one.
struct Share {
  int64_t begin = 0, end = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
[[nodiscard]] Share share_of(int64_t size, int rank, int num_ranks);

// The places of a rank's items, ascending: each goes to the rank that has the least so far, the largest first, so that no rank waits long
// for another.
[[nodiscard]] std::vector<int64_t> share_by_size(std::span<const int64_t> sizes, int rank, int num_ranks);

}  // namespace kedge
