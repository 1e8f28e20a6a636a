// Sums in one kernel over GPUs' memory: mpirun -n 2 test_dist_cuda.
#include "kedge/dist/peer_sums.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>

#include "kedge/dist/tensor_ranks.h"
#include "kedge/dist/transport.h"
#include "kedge/engine/cuda_graph.h"

#include "tests/support/ranks.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::world;

constexpr int64_t kManyPieces = 5'000'001;  // of fp32: more than twice what one kernel adds up

class PeerSumsOnGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
    sums = make_peer_sums(world(), device);
    ASSERT_NE(sums, nullptr);
  }

  [[nodiscard]] static Tensor values_of(int from, int64_t size, at::ScalarType dtype, int step = 0) {
    return normals({size}, static_cast<uint64_t>(100 * step + from)).to(dtype);
  }

  // The sum over `count` ranks from `first`, computed here.
  [[nodiscard]] static Tensor wanted(int first, int count, int64_t size, at::ScalarType dtype, int step = 0) {
    std::vector<Tensor> parts;
    for (int from = first; from < first + count; ++from) parts.push_back(values_of(from, size, dtype, step));
    const Tensor sum = at::empty_like(parts[0]);
    sum_in_order(parts, sum);
    return sum;
  }

  const at::Device device = testing::mesh().device;
  const int rank = world().rank(), size = world().size();
  std::shared_ptr<PeerSums> sums;
};

TEST_F(PeerSumsOnGpus, HaveTheBitsOfTheSumInRankOrder) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t numel : {int64_t{1}, int64_t{7}, int64_t{8}, int64_t{4096}, int64_t{100'003}, int64_t{1} << 19, kManyPieces}) {
      const Tensor row = values_of(rank, numel, dtype).to(device);
      sums->sum_(row, 0, size);
      EXPECT_TRUE(at::equal(row.cpu(), wanted(0, size, numel, dtype))) << dtype << ", " << numel;
    }
}

TEST_F(PeerSumsOnGpus, RowsMayBeginAnywhere) {
  const Tensor whole = values_of(rank, 4097, at::kBFloat16).to(device);
  sums->sum_(whole.narrow(0, 1, 4096), 0, size);
  EXPECT_TRUE(at::equal(whole.narrow(0, 1, 4096).cpu(), wanted(0, size, 4097, at::kBFloat16).narrow(0, 1, 4096)));
  EXPECT_TRUE(at::equal(whole[0].cpu(), values_of(rank, 4097, at::kBFloat16)[0]));
}

TEST_F(PeerSumsOnGpus, NeighboursSumAmongThemselves) {
  if (size % 2 != 0) GTEST_SKIP() << "needs pairs of ranks";
  for (int step = 0; step < 20; ++step) {
    const int count = step % 3 == 0 ? size : 2, first = rank / count * count;
    const Tensor row = values_of(rank, 3000, at::kFloat, step).to(device);
    sums->sum_(row, first, count);
    EXPECT_TRUE(at::equal(row.cpu(), wanted(first, count, 3000, at::kFloat, step))) << step;
  }
}

// Recorded once and replayed, between other sums: the halves of the memory keep taking turns.
TEST_F(PeerSumsOnGpus, AreRecordedAndReplayed) {
  const TensorRanks ranks(world(), sums);
  EXPECT_TRUE(ranks.is_recordable());
  const Tensor small = at::zeros({513}, at::TensorOptions(at::kFloat).device(device)), large = at::zeros({1 << 18}, small.options());
  CudaGraphs graphs;  // destroyed before the sums
  for (int step = 0; step < 12; ++step) {
    small.copy_(values_of(rank, small.numel(), at::kFloat, step));
    large.copy_(values_of(rank, large.numel(), at::kFloat, step));
    static_cast<void>(graphs.run({1}, [&] {
      ranks.sum_(small);
      ranks.sum_(large);
      return small;
    }));
    EXPECT_TRUE(at::equal(small.cpu(), wanted(0, size, small.numel(), at::kFloat, step))) << "step " << step;
    EXPECT_TRUE(at::equal(large.cpu(), wanted(0, size, large.numel(), at::kFloat, step))) << "step " << step;
    if (step % 2 == 1) continue;
    const Tensor other = values_of(rank, 2000, at::kBFloat16, step).to(device);
    sums->sum_(other, 0, size);
    EXPECT_TRUE(at::equal(other.cpu(), wanted(0, size, 2000, at::kBFloat16, step))) << "step " << step;
  }
}

TEST_F(PeerSumsOnGpus, OtherTypesAreLeftToTheTransport) {
  EXPECT_FALSE(sums->should_sum(at::ones({4}, at::TensorOptions(at::kLong).device(device))));
  EXPECT_FALSE(sums->should_sum(at::ones({4}, at::TensorOptions(at::kDouble).device(device))));
}

}  // namespace
}  // namespace kedge
