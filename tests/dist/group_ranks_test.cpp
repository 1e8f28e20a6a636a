// Every collective call among the ranks mpirun has started (2 or 3). Rank r's data is known to all, so every rank checks
// every result.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "kedge/core/tensor.h"

#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::world;

using testing::kEveryDtype;
using testing::rank;
using testing::size;

// [0, 1, 2, ...] of that many elements, times `factor`.
Tensor count_up(int64_t numel, int64_t factor, at::ScalarType dtype = at::kFloat) {
  return (at::arange(numel, at::kLong) * factor).to(dtype);
}

// 1 + 2 + ... + size
int64_t sum_of_ranks_from_1() { return size() == 2 ? 3 : 6; }

constexpr std::array kNumbers = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kShort, at::kByte};

// More than one piece of 32 MiB, and no round number.
constexpr int64_t kManyFloats = 9'000'001;

std::string raw_bytes(const Tensor& tensor) {
  const Tensor flat = tensor.contiguous();
  return {static_cast<const char*>(flat.data_ptr()), flat.nbytes()};
}

void expect_same_on_every_rank(const Tensor& tensor) {
  for (const std::string& bytes : world().all_gather(raw_bytes(tensor))) EXPECT_TRUE(bytes == raw_bytes(tensor));
}

TEST(Ranks, AreTwoOrThreeOnOneMachine) {
  ASSERT_TRUE(size() == 2 || size() == 3) << "the expected values below are worked for these";
  EXPECT_EQ(testing::mesh().local_rank, rank());
}

TEST(Broadcast, EveryDtypeFromEveryRank) {
  for (const at::ScalarType dtype : kEveryDtype) {
    for (int root = 0; root < size(); ++root) {
      const Tensor tensor = count_up(6, rank() + 1, dtype).view({2, 3});
      world().broadcast(tensor, root);
      EXPECT_TRUE(at::equal(tensor, count_up(6, root + 1, dtype).view({2, 3})));
    }
  }
}

TEST(Broadcast, StridedEmptyAndScalarTensors) {
  const Tensor whole = at::full({3, 4}, rank());
  world().broadcast(whole.t().narrow(0, 1, 2), 1);  // columns 1 and 2
  EXPECT_TRUE(at::equal(whole.narrow(1, 1, 2), at::full({3, 2}, 1)));
  EXPECT_TRUE(at::equal(whole.narrow(1, 0, 1), at::full({3, 1}, rank())));
  EXPECT_TRUE(at::equal(whole.narrow(1, 3, 1), at::full({3, 1}, rank())));
  const Tensor scalar = at::full({}, rank() + 5);
  world().broadcast(scalar, 1);
  EXPECT_EQ(scalar.item<int64_t>(), 6);
  world().broadcast(at::empty({0, 3}), 0);
}

TEST(Broadcast, ATensorOfManyPieces) {
  const Tensor tensor = rank() == 1 ? count_up(kManyFloats, 1, at::kInt) : at::zeros({kManyFloats}, at::kInt);
  world().broadcast(tensor, 1);
  EXPECT_TRUE(at::equal(tensor, count_up(kManyFloats, 1, at::kInt)));
}

TEST(Broadcast, TextsOfAnyLength) {
  for (const std::string& expected : {std::string(), std::string("a\0\xff", 3), std::string(100'000, 'x')}) {
    std::string text = rank() == 1 ? expected : "something else";
    world().broadcast(text, 1);
    EXPECT_EQ(text, expected);
  }
}

TEST(AllReduce, SumsEveryNumber) {
  for (const at::ScalarType dtype : kNumbers) {
    const Tensor tensor = count_up(7, rank() + 1, dtype);
    world().all_reduce(tensor, Reduce::sum);
    EXPECT_TRUE(at::equal(tensor, count_up(7, sum_of_ranks_from_1(), dtype))) << dtype;
  }
}

TEST(AllReduce, TakesTheMaximumOfEveryDtype) {
  for (const at::ScalarType dtype : kNumbers) {
    const Tensor tensor = count_up(7, rank() + 1, dtype);
    world().all_reduce(tensor, Reduce::max);
    EXPECT_TRUE(at::equal(tensor, count_up(7, size(), dtype))) << dtype;
  }
  const Tensor flags = at::zeros({4}, at::kBool);
  flags[rank()].fill_(true);
  world().all_reduce(flags, Reduce::max);
  EXPECT_EQ(flags.sum().item<int64_t>(), size());
  const Tensor negative = at::full({2}, -1.0F - static_cast<float>(rank()));
  world().all_reduce(negative, Reduce::max);
  EXPECT_TRUE(at::equal(negative, at::full({2}, -1.0F)));
}

TEST(AllReduce, ANaNOfAnyRankIsTheResult) {
  for (int guilty = 0; guilty < size(); ++guilty) {
    const Tensor tensor = at::full({2}, rank() == guilty ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
    const Tensor copy = tensor.clone();
    world().all_reduce(tensor, Reduce::max);
    world().all_reduce(copy, Reduce::sum);
    EXPECT_TRUE(std::isnan(tensor[1].item<float>()) && std::isnan(copy[1].item<float>()));
    double number = rank() == guilty ? std::nan("") : 1.0;
    world().all_reduce({&number, 1}, Reduce::max);
    EXPECT_TRUE(std::isnan(number));
  }
}

// bf16 holds 8 significant bits: above 256 only even numbers. 256 + 1 rounds to 256, so adding 1 twice in bf16 would stay
// there; in fp32 the sum is 258, and of two ranks 257, which rounds to the even neighbour 256. fp16: the same at 2048.
TEST(AllReduce, NarrowFloatsAreSummedInFp32AndRoundedOnce) {
  const Tensor bf16 = at::full({3}, rank() == 0 ? 256 : 1, at::kBFloat16);
  world().all_reduce(bf16, Reduce::sum);
  EXPECT_EQ(bf16[2].item<float>(), size() == 2 ? 256.0F : 258.0F);
  const Tensor fp16 = at::full({3}, rank() == 0 ? 2048 : 1, at::kHalf);
  world().all_reduce(fp16, Reduce::sum);
  EXPECT_EQ(fp16[2].item<float>(), size() == 2 ? 2048.0F : 2050.0F);
}

TEST(AllReduce, IntegersAreExactAndWrapAround) {
  const int64_t big = (int64_t{1} << 53) + 1;  // no double
  const Tensor int64 = at::full({2}, big + rank(), at::kLong);
  world().all_reduce(int64, Reduce::sum);
  EXPECT_EQ(int64[1].item<int64_t>(), size() == 2 ? 18014398509481987 : 27021597764222982);
  const Tensor uint8 = at::full({2}, 200, at::kByte);
  world().all_reduce(uint8, Reduce::sum);
  EXPECT_EQ(uint8[1].item<int64_t>(), size() == 2 ? 144 : 88);  // 400 - 256, 600 - 512
}

// In fp32, 1e8 + 1 is 1e8, so in rank order the sum is 0; in any order that cancels first it would be 1.
TEST(AllReduce, AddsInRankOrder) {
  if (size() != 3) GTEST_SKIP() << "worked for three ranks";
  constexpr std::array kOfRank = {1e8F, 1.0F, -1e8F};
  const Tensor tensor = at::full({5}, kOfRank.at(static_cast<size_t>(rank())));
  world().all_reduce(tensor, Reduce::sum);
  EXPECT_TRUE(at::equal(tensor, at::zeros({5})));
}

// Fractions whose sums are inexact; rank r's are known to every rank.
std::vector<float> fractions_of(int of_rank, int64_t numel) {
  std::vector<float> values;
  for (int64_t i = 0; i < numel; ++i) values.push_back(static_cast<float>((i * 7919 + of_rank * 104'729) % 100'003) / 3.0F);
  return values;
}

TEST(AllReduce, ALongFp32SumIsTheRankOrderSumBitForBitOnEveryRank) {
  std::vector<float> expected = fractions_of(0, kManyFloats);
  for (int other = 1; other < size(); ++other) {
    const std::vector<float> values = fractions_of(other, kManyFloats);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += values[i];
  }
  std::vector<float> mine = fractions_of(rank(), kManyFloats);
  const Tensor tensor = at::from_blob(mine.data(), {kManyFloats});
  world().all_reduce(tensor, Reduce::sum);
  EXPECT_EQ(std::memcmp(mine.data(), expected.data(), tensor.nbytes()), 0);
  expect_same_on_every_rank(tensor);
}

TEST(AllReduce, StridedEmptyAndScalarTensors) {
  const Tensor whole = at::full({3, 4}, rank() + 1);
  world().all_reduce(whole.t().narrow(0, 1, 2), Reduce::sum);  // columns 1 and 2
  EXPECT_TRUE(at::equal(whole.narrow(1, 1, 2), at::full({3, 2}, sum_of_ranks_from_1())));
  EXPECT_TRUE(at::equal(whole.narrow(1, 0, 1), at::full({3, 1}, rank() + 1)));
  const Tensor scalar = at::full({}, rank() + 1);
  world().all_reduce(scalar, Reduce::sum);
  EXPECT_EQ(scalar.item<int64_t>(), sum_of_ranks_from_1());
  world().all_reduce(at::empty({4, 0}), Reduce::max);
}

TEST(AllReduce, ParametersThatRequireGradAreReducedInPlace) {
  const Tensor leaf = at::full({2}, static_cast<float>(rank() + 1)).requires_grad_();
  world().all_reduce(leaf, Reduce::sum);
  EXPECT_TRUE(leaf.requires_grad() && leaf.is_leaf());
  EXPECT_TRUE(at::equal(leaf.detach(), at::full({2}, static_cast<float>(sum_of_ranks_from_1()))));
}

TEST(AllReduce, Doubles) {
  std::array<double, 2> sums{0.25 * (rank() + 1), -1.0};
  world().all_reduce(sums, Reduce::sum);
  EXPECT_EQ(sums, size() == 2 ? (std::array{0.75, -2.0}) : (std::array{1.5, -3.0}));
  std::array<double, 2> largest{-1.0 - rank(), 1.0 * rank()};
  world().all_reduce(largest, Reduce::max);
  EXPECT_EQ(largest, (std::array{-1.0, size() - 1.0}));
  world().all_reduce(std::span<double>(), Reduce::sum);
}

}  // namespace
}  // namespace kedge
