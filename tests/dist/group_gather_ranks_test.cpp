// The calls that gather and scatter rows, and ranks that disagree, among the 2 or 3 ranks mpirun has started.
#include <gtest/gtest.h>

#include <array>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "kedge/core/tensor.h"

#include "tests/support/expect_error.h"
#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::world;

using testing::kEveryDtype;
using testing::rank;
using testing::size;

// More than one piece of 32 MiB shared by two or three ranks, and no round number.
constexpr int64_t kManyInts = 5'000'001;

// Rows of three: rank r's row i is [100 r + 10 i, 100 r + 10 i + 1, 100 r + 10 i + 2].
Tensor rows_of(int of_rank, int64_t num_rows) {
  return at::arange(num_rows, at::kLong).view({-1, 1}) * 10 + at::arange(3, at::kLong) + 100 * of_rank;
}

TEST(AllGather, PutsEveryRanksRowsInRankOrder) {
  const Tensor all = world().all_gather(rows_of(rank(), 2));
  std::vector<Tensor> expected;
  for (int other = 0; other < size(); ++other) expected.push_back(rows_of(other, 2));
  EXPECT_TRUE(at::equal(all, at::cat(expected)));
  EXPECT_EQ(all[2][1].item<int64_t>(), 101);  // rank 1, row 0
}

TEST(AllGather, EveryDtype) {
  for (const at::ScalarType dtype : kEveryDtype) {
    const Tensor all = world().all_gather(at::full({2}, rank(), dtype));
    EXPECT_EQ(all.scalar_type(), dtype);
    EXPECT_TRUE(at::equal(all, at::arange(size(), at::kLong).to(dtype).view({-1, 1}).expand({size(), 2}).reshape(-1))) << dtype;
  }
}

TEST(AllGather, StridedEmptyAndScalarTensors) {
  const Tensor turned = world().all_gather(rows_of(rank(), 2).t());
  EXPECT_EQ(turned.sizes(), at::IntArrayRef({3L * size(), 2}));
  EXPECT_TRUE(at::equal(turned.narrow(0, 3, 3), rows_of(1, 2).t()));
  EXPECT_TRUE(at::equal(world().all_gather(at::full({}, rank())), at::arange(size(), at::kLong)));
  EXPECT_EQ(world().all_gather(at::empty({2, 0})).sizes(), at::IntArrayRef({2L * size(), 0}));
  EXPECT_FALSE(world().all_gather(at::zeros({1}).requires_grad_()).requires_grad());
}

TEST(AllGather, ATensorOfManyPieces) {
  const Tensor all = world().all_gather(at::arange(kManyInts, at::kLong).add(rank()).to(at::kInt).view({1, -1}));
  for (int other = 0; other < size(); ++other) EXPECT_TRUE(at::equal(all[other], at::arange(kManyInts, at::kLong).add(other).to(at::kInt)));
}

TEST(AllGather, TextsOfUnequalLength) {
  const auto text_of = [](int of_rank) {
    return of_rank == 1 ? std::string() : std::string(static_cast<size_t>(of_rank) * 50'000 + 2, '\0') + "end";
  };
  const std::vector<std::string> all = world().all_gather(text_of(rank()));
  ASSERT_EQ(all.size(), static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other) EXPECT_EQ(all[static_cast<size_t>(other)], text_of(other));
}

TEST(AllGatherRows, RanksMayHaveDifferentNumbersOfRowsAndNone) {
  constexpr std::array<int64_t, 3> kRows = {2, 0, 3};
  const Tensor all = world().all_gather_rows(rows_of(rank(), kRows.at(static_cast<size_t>(rank()))));
  const Tensor expected = size() == 2 ? rows_of(0, 2) : at::cat({rows_of(0, 2), rows_of(2, 3)});
  EXPECT_TRUE(at::equal(all, expected));
}

TEST(AllGatherRows, NoRowsAnywhereAreNoRows) {
  EXPECT_EQ(world().all_gather_rows(at::empty({0, 3}, at::kBFloat16)).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_TRUE(at::equal(world().all_gather_rows(at::full({}, rank())), at::arange(size(), at::kLong)));
}

TEST(AllGatherRows, ManyPiecesOfUnequalLength) {
  const Tensor all = world().all_gather_rows(at::full({rank() == 1 ? kManyInts : 1}, rank() + 1, at::kInt));
  EXPECT_EQ(all.size(0), kManyInts + size() - 1);
  EXPECT_EQ(all[0].item<int64_t>(), 1);
  EXPECT_TRUE(at::equal(all.narrow(0, 1, kManyInts), at::full({kManyInts}, 2, at::kInt)));
  EXPECT_EQ(all[-1].item<int64_t>(), size());
}

TEST(ReduceScatter, EachRankGetsItsRowsOfTheSum) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kShort, at::kByte}) {
    const Tensor rows = at::arange(2L * size() * 3, at::kLong).view({-1, 3});
    const Tensor mine = world().reduce_scatter((rows * (rank() + 1)).to(dtype), Reduce::sum);
    EXPECT_TRUE(at::equal(mine, (rows.narrow(0, 2L * rank(), 2) * (size() == 2 ? 3 : 6)).to(dtype))) << dtype;
  }
}

TEST(ReduceScatter, TakesTheMaximum) {
  const Tensor mine = world().reduce_scatter(at::full({size(), 2}, -10 * rank()), Reduce::max);
  EXPECT_TRUE(at::equal(mine, at::zeros({1, 2}, at::kLong)));
}

// Rank order, and fp32 for bf16: see the same of all_reduce in group_ranks_test.cpp.
TEST(ReduceScatter, AddsInRankOrderAndRoundsOnce) {
  if (size() != 3) GTEST_SKIP() << "worked for three ranks";
  constexpr std::array kOfRank = {1e8F, 1.0F, -1e8F};
  const Tensor fp32 = at::full({3}, kOfRank.at(static_cast<size_t>(rank())));
  EXPECT_EQ(world().reduce_scatter(fp32, Reduce::sum).item<float>(), 0.0F);
  const Tensor bf16 = at::full({3}, rank() == 0 ? 256 : 1, at::kBFloat16);
  EXPECT_EQ(world().reduce_scatter(bf16, Reduce::sum).item<float>(), 258.0F);
}

TEST(ReduceScatter, StridedEmptyAndManyPieces) {
  const Tensor turned = at::ones({4, size()}).t();
  EXPECT_TRUE(at::equal(world().reduce_scatter(turned, Reduce::sum), at::full({1, 4}, static_cast<float>(size()))));
  EXPECT_TRUE(at::equal(turned, at::ones({size(), 4}))) << "the input stays as it was";
  EXPECT_EQ(world().reduce_scatter(at::empty({0, 5}), Reduce::sum).sizes(), at::IntArrayRef({0, 5}));
  const Tensor row = at::arange(kManyInts, at::kLong).to(at::kInt);
  const Tensor many =
      world().reduce_scatter(at::cat(std::vector(static_cast<size_t>(size()), row)).add_(rank()).view({size(), -1}), Reduce::sum);
  EXPECT_TRUE(at::equal(many[0], row * size() + (size() == 2 ? 1 : 3)));
}

TEST(ReduceScatter, RowsThatDoNotDivideAreRefused) {
  EXPECT_EQ(error_of<Bug>([] {
              return world().reduce_scatter(at::zeros({7, 2}), Reduce::sum);
            }),
            str("reduce_scatter of [7, 2] among ", size(), " ranks: the first dimension must divide evenly"));
}

template <typename Call>
std::string disagreement(Call&& call) {
  return error_of<Error>([&] { return call(), 0; });
}

// All ranks throw the same text, none waits, and the next call works.
TEST(Disagreement, OnTheShapeIsAnErrorOnEveryRank) {
  const int64_t columns = rank() == 1 ? 5 : 4;
  EXPECT_EQ(disagreement([&] {
              world().all_reduce(at::zeros({3, columns}), Reduce::sum);
            }),
            "the ranks disagree: rank 0 calls all_reduce sum of fp32 [3, 4], rank 1 calls all_reduce sum of fp32 [3, 5]");
  EXPECT_EQ(disagreement([&] { world().broadcast(at::zeros({columns}), 0); }),
            "the ranks disagree: rank 0 calls broadcast from rank 0 of fp32 [4], rank 1 calls broadcast from rank 0 of fp32 [5]");
  EXPECT_EQ(disagreement([&] { (void)world().all_gather(at::zeros({columns})); }),
            "the ranks disagree: rank 0 calls all_gather of fp32 [4], rank 1 calls all_gather of fp32 [5]");
  EXPECT_EQ(disagreement([&] {
              (void)world().all_gather_rows(at::zeros({1, columns}));
            }),
            "the ranks disagree: rank 0 calls all_gather_rows of fp32 [1, 4], rank 1 calls all_gather_rows of fp32 [1, 5]");
  EXPECT_EQ(disagreement([&] {
              (void)world().reduce_scatter(at::zeros({size(), columns}), Reduce::sum);
            }),
            str("the ranks disagree: rank 0 calls reduce_scatter sum of fp32 [", size(), ", 4], rank 1 calls reduce_scatter sum of fp32 [",
                size(), ", 5]"));
  std::vector<double> numbers(static_cast<size_t>(columns));
  EXPECT_EQ(disagreement([&] { world().all_reduce(numbers, Reduce::max); }),
            "the ranks disagree: rank 0 calls all_reduce max of doubles [4], rank 1 calls all_reduce max of doubles [5]");
  world().barrier();
}

TEST(Disagreement, OnTheTypeIsAnErrorOnEveryRank) {
  EXPECT_EQ(disagreement([] { world().all_reduce(at::zeros({2}, rank() == 1 ? at::kBFloat16 : at::kFloat), Reduce::sum); }),
            "the ranks disagree: rank 0 calls all_reduce sum of fp32 [2], rank 1 calls all_reduce sum of bf16 [2]");
  world().barrier();
}

TEST(Disagreement, OnTheCallIsAnErrorOnEveryRank) {
  EXPECT_EQ(disagreement([] { world().all_reduce(at::zeros({2}), rank() == 1 ? Reduce::max : Reduce::sum); }),
            "the ranks disagree: rank 0 calls all_reduce sum of fp32 [2], rank 1 calls all_reduce max of fp32 [2]");
  EXPECT_EQ(disagreement([] { world().broadcast(at::zeros({2}), rank() == 1 ? 1 : 0); }),
            "the ranks disagree: rank 0 calls broadcast from rank 0 of fp32 [2], rank 1 calls broadcast from rank 1 of fp32 [2]");
  EXPECT_EQ(disagreement([] {
              if (rank() == 1)
                (void)world().all_gather("text");
              else
                world().barrier();
            }),
            "the ranks disagree: rank 0 calls barrier, rank 1 calls all_gather of bytes [4]");
  world().barrier();
}

}  // namespace
}  // namespace kedge
