#include "kedge/core/random.h"

#include <numeric>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Separates the order of rows from other random numbers of the same seed.
constexpr uint64_t kPermutationStream = Random::stream_of({0x7065726dU});

}  // namespace

std::vector<int64_t> permutation(int64_t size, uint64_t seed) {
  ensure(size >= 0, "permutation of ", size, " rows");
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const Random random(seed, kPermutationStream);
  for (size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random.below(order.size() - i, i)]);
  return order;
}

}  // namespace kedge
