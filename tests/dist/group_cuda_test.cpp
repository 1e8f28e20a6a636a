// CUDA tensors through the collective calls, among ranks that may share one GPU: mpirun -n 2 test_dist_cuda.
#include <gtest/gtest.h>

#include <array>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "kedge/core/tensor.h"

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::world;

// 36 MB and 20 MB a row: more than one piece, and no round number.
constexpr int64_t kManyFloats = 9'000'001;
constexpr int64_t kManyInts = 5'000'001;

class CudaRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  }

  // [0, 1, 2, ...] times `factor`, on this rank's GPU.
  [[nodiscard]] Tensor count_up(int64_t numel, int64_t factor, at::ScalarType dtype) const {
    return (at::arange(numel, at::TensorOptions(at::kLong).device(device)) * factor).to(dtype);
  }

  const at::Device device = testing::mesh().device;
  const int rank = world().rank();
  const int size = world().size();
  const int64_t sum = size * (size + 1) / 2;  // 1 + 2 + ... + size
};

constexpr std::array kNumbers = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kShort, at::kByte};

TEST_F(CudaRanks, EveryDtypeThroughEveryCall) {
  for (const at::ScalarType dtype : kNumbers) {
    const Tensor sent = count_up(6, rank + 1, dtype);
    world().broadcast(sent, size - 1);
    EXPECT_TRUE(at::equal(sent, count_up(6, size, dtype))) << dtype;
    const Tensor summed = count_up(6, rank + 1, dtype);
    world().all_reduce(summed, Reduce::sum);
    EXPECT_TRUE(at::equal(summed, count_up(6, sum, dtype))) << dtype;
    const Tensor largest = count_up(6, rank + 1, dtype);
    world().all_reduce(largest, Reduce::max);
    EXPECT_TRUE(at::equal(largest, count_up(6, size, dtype))) << dtype;
    const Tensor all = world().all_gather(count_up(3, rank + 1, dtype));
    const Tensor rows = world().all_gather_rows(count_up(rank, rank + 1, dtype));
    EXPECT_EQ(all.device(), device);
    EXPECT_EQ(rows.size(0), size * (size - 1) / 2);
    for (int other = 0; other < size; ++other) {
      EXPECT_TRUE(at::equal(all.narrow(0, 3L * other, 3), count_up(3, other + 1, dtype))) << dtype;
      EXPECT_TRUE(at::equal(rows.narrow(0, other * (other - 1) / 2, other), count_up(other, other + 1, dtype))) << dtype;
    }
    const Tensor mine = world().reduce_scatter(count_up(2L * size, rank + 1, dtype), Reduce::sum);
    EXPECT_TRUE(at::equal(mine, count_up(2L * size, sum, dtype).narrow(0, 2L * rank, 2))) << dtype;
  }
}

TEST_F(CudaRanks, BoolStridedEmptyAndScalarTensors) {
  const Tensor flags = at::zeros({size}, at::TensorOptions(at::kBool).device(device));
  flags[rank].fill_(true);
  world().all_reduce(flags, Reduce::max);
  EXPECT_EQ(flags.sum().item<int64_t>(), size);
  const Tensor whole = at::full({3, 4}, rank + 1, at::TensorOptions(at::kLong).device(device));
  world().all_reduce(whole.t().narrow(0, 1, 2), Reduce::sum);  // columns 1 and 2
  EXPECT_TRUE(at::equal(whole.narrow(1, 1, 2), at::full({3, 2}, sum, whole.options())));
  EXPECT_TRUE(at::equal(whole.narrow(1, 0, 1), at::full({3, 1}, rank + 1, whole.options())));
  const Tensor scalar = at::full({}, rank, whole.options());
  EXPECT_TRUE(at::equal(world().all_gather(scalar), at::arange(size, whole.options())));
  world().broadcast(at::empty({0, 3}, whole.options()), 0);
  EXPECT_EQ(world().all_gather_rows(at::empty({0, 3}, whole.options())).sizes(), at::IntArrayRef({0, 3}));
}

// The fractions are inexact, so the bits depend on the order of the sum; CPU tensors are summed in rank order by the same call.
TEST_F(CudaRanks, ALongSumHasTheBitsOfTheSameSumOnTheCpu) {
  const Tensor on_gpu = count_up(kManyFloats, 7919, at::kLong).add(104'729L * rank).remainder(100'003).to(at::kFloat) / 3;
  const Tensor on_cpu = on_gpu.cpu();
  world().all_reduce(on_gpu, Reduce::sum);
  world().all_reduce(on_cpu, Reduce::sum);
  EXPECT_TRUE(at::equal(on_gpu.cpu(), on_cpu));
}

TEST_F(CudaRanks, ManyPiecesThroughTheOtherCalls) {
  const Tensor sent = count_up(kManyFloats, rank + 1, at::kInt);
  world().broadcast(sent, 0);
  EXPECT_TRUE(at::equal(sent, count_up(kManyFloats, 1, at::kInt)));
  const Tensor rows = world().all_gather_rows(count_up(rank == 1 ? kManyInts : 1, 1, at::kInt));
  EXPECT_EQ(rows.size(0), kManyInts + size - 1);
  EXPECT_TRUE(at::equal(rows.narrow(0, 1, kManyInts), count_up(kManyInts, 1, at::kInt)));
  const Tensor row = count_up(kManyInts, 1, at::kInt);
  const Tensor mine = world().reduce_scatter((row * (rank + 1)).expand({size, kManyInts}), Reduce::sum);
  EXPECT_TRUE(at::equal(mine[0], row * sum));
}

// The collective must wait for the kernels that make its input, and the next kernels for the collective.
TEST_F(CudaRanks, WorkInFlightIsSeenByTheCall) {
  Tensor value = at::ones({1 << 20}, at::TensorOptions(at::kDouble).device(device));
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; i < 50; ++i) value = value * 2;
    world().all_reduce(value, Reduce::max);
    for (int i = 0; i < 50; ++i) value = value / 2;
  }
  EXPECT_TRUE(at::equal(value, at::ones_like(value)));
}

}  // namespace
}  // namespace kedge
