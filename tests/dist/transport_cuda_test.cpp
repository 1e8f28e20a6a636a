// NCCL and CUDA IPC between ranks that may share one GPU: mpirun -n 2 test_dist_cuda.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/core/tensor.h"
#include "kedge/dist/nccl_transport.h"
#include "kedge/dist/peer_transport.h"
#include "kedge/engine/cuda_graph.h"

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::kEveryDtype;
using testing::world;

constexpr int64_t kSmallStagingBytes = int64_t{1} << 20;  // two ranks: 512 KiB a round

// What `source` sends to `target`, on the CPU. Below 61, so the sum over four ranks is exact in every type.
Tensor sent_by(int source, int target, int64_t numel, at::ScalarType dtype) {
  return (at::arange(numel, at::kLong) * 3 + (7L * source + 11L * target)).remainder(61).to(dtype);
}

struct Kind {
  std::string name;
  std::function<std::shared_ptr<Transport>(const Group&, at::Device)> make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class Transports : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
    transport = GetParam().make(world(), device);
  }
  void TearDown() override {
    if (transport) transport->check();
  }

  // Part of `length(source, target)` elements between every two ranks.
  template <typename Length>
  void exchange_and_compare(Length&& length, at::ScalarType dtype) const {
    std::vector<Tensor> to, from;
    for (int other = 0; other < size; ++other) {
      to.push_back(sent_by(rank, other, length(rank, other), dtype).to(device));
      from.push_back(at::zeros({length(other, rank)}, to.back().options()));
    }
    transport->exchange(to, from);
    for (int other = 0; other < size; ++other) {
      const Tensor expected = sent_by(other, rank, length(other, rank), dtype);
      EXPECT_TRUE(at::equal(from[static_cast<size_t>(other)].cpu(), expected)) << dtype << " from rank " << other;
    }
  }

  void gather_and_compare(int64_t numel, at::ScalarType dtype, bool in_place) const {
    const Tensor all = at::zeros({numel * size}, at::TensorOptions(dtype).device(device));
    const Tensor own = all.narrow(0, rank * numel, numel);
    const Tensor mine = in_place ? own : at::empty_like(own);
    mine.copy_(sent_by(rank, 0, numel, dtype));
    transport->all_gather(mine, all);
    for (int other = 0; other < size; ++other)
      EXPECT_TRUE(at::equal(all.narrow(0, other * numel, numel).cpu(), sent_by(other, 0, numel, dtype))) << dtype << " from rank " << other;
  }

  void reduce_and_compare(int64_t numel, at::ScalarType dtype) const {
    std::vector<Tensor> parts;
    for (int other = 0; other < size; ++other) parts.push_back(sent_by(rank, other, numel, dtype));
    Tensor expected = at::zeros({numel}, at::kDouble);
    for (int other = 0; other < size; ++other) expected += sent_by(other, rank, numel, at::kDouble);
    const Tensor own = at::zeros({numel}, at::TensorOptions(dtype).device(device));
    transport->fast_reduce_scatter(at::cat(parts).to(device), own);
    EXPECT_TRUE(at::equal(own.cpu(), expected.to(dtype))) << dtype;
  }

  const at::Device device = testing::mesh().device;
  const int rank = world().rank();
  const int size = world().size();
  std::shared_ptr<Transport> transport;
};

TEST_P(Transports, KnowTheirRanks) {
  EXPECT_EQ(transport->rank(), rank);
  EXPECT_EQ(transport->size(), size);
  EXPECT_TRUE(GetParam().name.starts_with(transport->name()));
}

TEST_P(Transports, EveryDtypeIsExchanged) {
  for (const at::ScalarType dtype : kEveryDtype)
    exchange_and_compare([](int source, int target) { return 3L * source + 5L * target + 1; }, dtype);
}

TEST_P(Transports, PartsMayBeEmpty) {
  exchange_and_compare([](int, int) { return 0L; }, at::kFloat);
  exchange_and_compare([](int source, int target) { return source < target ? 77L : 0L; }, at::kFloat);
  exchange_and_compare([](int source, int target) { return source == target ? 13L : 0L; }, at::kLong);
  exchange_and_compare([](int source, int target) { return source == 0 && target == 1 ? 1L : 0L; }, at::kByte);
}

// A float is 4 bytes: 36 MB, 4 MB and their neighbours, which differ between the two directions.
TEST_P(Transports, LongPartsOfDifferentLengths) {
  exchange_and_compare([](int source, int target) { return source < target ? 9'000'001L : 1'000'003L; }, at::kFloat);
  exchange_and_compare([](int source, int target) { return source < target ? 131'072L : 131'073L; }, at::kFloat);  // a round, and one more
  exchange_and_compare([](int source, int target) { return 1'000'000L * (source + 1) + target; }, at::kByte);
}

TEST_P(Transports, TheOwnPartMayBeTheSameMemory) {
  std::vector<Tensor> to, from;
  for (int other = 0; other < size; ++other) {
    to.push_back(sent_by(rank, other, 1001, at::kFloat).to(device));
    from.push_back(other == rank ? to.back() : at::zeros_like(to.back()));
  }
  transport->exchange(to, from);
  for (int other = 0; other < size; ++other)
    EXPECT_TRUE(at::equal(from[static_cast<size_t>(other)].cpu(), sent_by(other, rank, 1001, at::kFloat)));
}

TEST_P(Transports, EveryDtypeIsGathered) {
  for (const at::ScalarType dtype : kEveryDtype) {
    gather_and_compare(7, dtype, false);
    gather_and_compare(7, dtype, true);
  }
  gather_and_compare(0, at::kFloat, true);
  gather_and_compare(9'000'001, at::kFloat, true);
  gather_and_compare(9'000'001, at::kBFloat16, false);
}

TEST_P(Transports, EveryNumberIsSummed) {
  for (const at::ScalarType dtype : kEveryDtype)
    if (dtype != at::kBool) reduce_and_compare(5, dtype);
  reduce_and_compare(0, at::kFloat);
  reduce_and_compare(4'500'001, at::kFloat);
  reduce_and_compare(4'500'001, at::kBFloat16);
}

// A call must wait for the kernels that make its input, and the next kernels for the call, round after round.
TEST_P(Transports, WorkInFlightIsSeenByTheCall) {
  Tensor value = at::ones({1 << 20}, at::TensorOptions(at::kDouble).device(device));
  const Tensor all = at::empty({size * value.numel()}, value.options());
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; i < 50; ++i) value = value * 2;
    transport->all_gather(value, all);
    value = all.narrow(0, (rank + 1) % size * value.numel(), value.numel()).clone();
    for (int i = 0; i < 50; ++i) value = value / 2;
  }
  EXPECT_TRUE(at::equal(value, at::ones_like(value)));
}

TEST_P(Transports, ManyCallsOneAfterAnother) {
  for (int step = 0; step < 30; ++step)
    exchange_and_compare([&](int source, int target) { return 200'000L * ((source + target + step) % 3); }, at::kInt);
}

TEST_P(Transports, AGroupOfOneMovesWhatItHas) {
  const std::shared_ptr<Transport> alone = GetParam().make(Group::single(), device);
  const Tensor value = sent_by(rank, 0, 1001, at::kFloat).to(device), copy = at::zeros_like(value);
  alone->exchange(std::vector{value}, std::vector{copy});
  EXPECT_TRUE(at::equal(copy, value));
  copy.zero_();
  alone->all_gather(value, copy);
  EXPECT_TRUE(at::equal(copy, value));
  copy.zero_();
  alone->fast_reduce_scatter(value, copy);
  EXPECT_TRUE(at::equal(copy, value));
  alone->check();
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, Transports,
    ::testing::Values(Kind{"nccl", make_nccl_transport},
                      Kind{"peer", [](const Group& group, at::Device device) { return make_peer_transport(group, device); }},
                      Kind{"peer_in_small_rounds",
                           [](const Group& group, at::Device device) { return make_peer_transport(group, device, kSmallStagingBytes); }}),
    [](const ::testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

// Recorded once, replayed with other numbers in the same memory.
void replay_exchanges(Transport& transport, at::Device device) {
  const int rank = transport.rank(), size = transport.size();
  std::vector<Tensor> to, from;
  for (int other = 0; other < size; ++other) {
    to.push_back(at::zeros({100'003}, at::TensorOptions(at::kFloat).device(device)));
    from.push_back(at::zeros_like(to.back()));
  }
  const Tensor gathered = at::zeros({size * to[0].numel()}, to[0].options()), sum = at::zeros_like(to[0]);
  CudaGraphs graphs;  // destroyed before the transport
  for (int step = 0; step < 6; ++step) {
    for (int other = 0; other < size; ++other) to[static_cast<size_t>(other)].fill_(100.0F * static_cast<float>(step) + 10 * rank + other);
    static_cast<void>(graphs.run({1}, [&] {
      transport.exchange(to, from);
      transport.all_gather(from[static_cast<size_t>(rank)], gathered);
      transport.fast_reduce_scatter(gathered, sum);
      return sum;
    }));
    transport.check();
    double expected_sum = 0;
    for (int other = 0; other < size; ++other) {
      const double received = 100.0 * step + 10 * other + rank;
      EXPECT_TRUE(at::equal(from[static_cast<size_t>(other)], at::full_like(sum, received))) << "step " << step << " from rank " << other;
      expected_sum += 100.0 * step + 10 * rank + rank;  // every rank holds what this one kept for itself
    }
    EXPECT_TRUE(at::equal(sum, at::full_like(sum, expected_sum))) << "step " << step;
  }
}

TEST(NcclGraphs, CallsAreRecordedAndReplayed) {
  const at::Device device = testing::mesh().device;
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  replay_exchanges(*make_nccl_transport(world(), device), device);
}

TEST(NcclGraphs, OneRankRecordsToo) {
  const at::Device device = testing::mesh().device;
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  replay_exchanges(*make_nccl_transport(Group::single(), device), device);
}

}  // namespace
}  // namespace kedge
