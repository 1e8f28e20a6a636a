// Tensors over MPI among the ranks that mpirun has started.
#include "kedge/dist/host_transport.h"

#include <gtest/gtest.h>

#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/core/error.h"

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::world;

// What rank `from` has for rank `to`: a different length for every pair, some empty.
Tensor parcel(int from, int to) { return at::full({(from * 7 + to * 3) % 5 * 1000}, from * 100 + to); }

TEST(HostTransport, EveryRankGetsWhatIsMeantForIt) {
  Transport& transport = world().transport(false);
  EXPECT_EQ(transport.name(), "mpi");
  EXPECT_EQ(transport.rank(), world().rank());
  ASSERT_EQ(transport.size(), world().size());
  std::vector<Tensor> to, from;
  for (int rank = 0; rank < world().size(); ++rank) {
    to.push_back(parcel(world().rank(), rank));
    from.push_back(at::zeros_like(parcel(rank, world().rank())));
  }
  transport.exchange(to, from);
  for (int rank = 0; rank < world().size(); ++rank) EXPECT_TRUE(at::equal(from[static_cast<size_t>(rank)], parcel(rank, world().rank())));
}

TEST(HostTransport, OnePartPerRankIsNeeded) {
  const std::vector<Tensor> one = {at::ones({2})};
  EXPECT_THROW(world().transport(false).exchange(one, one), Bug);
}

}  // namespace
}  // namespace kedge
