#pragma once
// Which rank takes which part.
#include <cstdint>

namespace kedge {

// Part `rank` of `size` items cut into `num_ranks` neighbouring parts whose sizes differ by at most one.
struct Share {
  int64_t begin = 0, end = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
[[nodiscard]] Share share_of(int64_t size, int rank, int num_ranks);

}  // namespace kedge
