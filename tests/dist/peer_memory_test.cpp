// mpirun -n 2 test_dist_cuda
#include "kedge/dist/peer_memory.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::world;

TEST(PeerMemory, IsZeroAndSeenByAllRanks) {
  const at::Device device = testing::mesh().device;
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  constexpr int64_t kInts = 3'000'000;
  const PeerMemory memory(world(), device, kInts * 4);
  const auto ints_of = [&](int rank) { return at::from_blob(memory[rank], {kInts}, at::TensorOptions(at::kInt).device(device)); };
  EXPECT_TRUE(at::equal(ints_of(world().rank()), at::zeros({kInts}, at::TensorOptions(at::kInt).device(device))));
  world().barrier();
  ints_of(world().rank()).fill_(world().rank() + 1);
  static_cast<void>(ints_of(world().rank())[0].item<int>());  // done
  world().barrier();
  for (int rank = 0; rank < world().size(); ++rank)
    EXPECT_TRUE(at::equal(ints_of(rank), at::full({kInts}, rank + 1, at::TensorOptions(at::kInt).device(device)))) << rank;
  world().barrier();  // all have read
}

}  // namespace
}  // namespace kedge
