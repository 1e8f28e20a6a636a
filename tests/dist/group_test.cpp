// A group of one; group_ranks_test.cpp is the same class with more.
#include "kedge/dist/group.h"

#include <gtest/gtest.h>

#include <array>

#include <ATen/ops/equal.h>

#include "kedge/core/tensor.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(SingleGroup, IsRank0Of1) {
  const Group group = Group::single();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  group.barrier();
}

TEST(SingleGroup, LeavesTextsAndNumbersAlone) {
  const Group group = Group::single();
  std::string text("a\0b", 3);
  group.broadcast(text, 0);
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_EQ(group.all_gather(text), std::vector{text});
  std::array<double, 2> values{1.5, -2.0};
  group.all_reduce(values, Reduce::sum);
  group.all_reduce(values, Reduce::max);
  EXPECT_EQ(values, (std::array{1.5, -2.0}));
}

TEST(SingleGroup, LeavesTensorsAlone) {
  const Group group = Group::single();
  const Tensor tensor = at::tensor({1.0F, -2.0F, 3.0F, 4.0F}).view({2, 2});
  const Tensor copy = tensor.clone();
  group.broadcast(tensor, 0);
  group.all_reduce(tensor, Reduce::sum);
  group.all_reduce(tensor, Reduce::max);
  EXPECT_TRUE(at::equal(tensor, copy));
  for (const Tensor& result : {group.all_gather(tensor), group.all_gather_rows(tensor), group.reduce_scatter(tensor, Reduce::sum)}) {
    EXPECT_TRUE(at::equal(result, copy));
    EXPECT_EQ(result.data_ptr(), tensor.data_ptr()) << "a group of one copies nothing";
  }
}

TEST(SingleGroup, ResultsHaveTheFormTheyHaveWithMoreRanks) {
  const Group group = Group::single();
  EXPECT_EQ(group.all_gather(at::full({}, 7)).sizes(), at::IntArrayRef({1}));
  EXPECT_EQ(group.all_gather_rows(at::empty({0, 4})).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_TRUE(group.all_gather(at::zeros({2, 3}).t()).is_contiguous());
  EXPECT_TRUE(group.reduce_scatter(at::zeros({2, 3}).t(), Reduce::sum).is_contiguous());
  EXPECT_FALSE(group.all_gather(at::zeros({2}).requires_grad_()).requires_grad());
}

TEST(SingleGroup, RefusesWhatNoGroupCanDo) {
  const Group group = Group::single();
  std::string text;
  EXPECT_EQ(testing::error_of<Bug>([&] { return group.broadcast(text, 1), 0; }), "broadcast from rank 1 in a group of 1");
  EXPECT_EQ(testing::error_of<Bug>([&] { return group.broadcast(at::zeros({1}), -1), 0; }), "broadcast from rank -1 in a group of 1");
  EXPECT_EQ(testing::error_of<Bug>([&] { return group.all_reduce(at::ones({1}, at::kBool), Reduce::sum), 0; }),
            "there is no sum of bool tensors; convert them to int64 first");
  EXPECT_EQ(testing::error_of<Bug>([&] { return group.reduce_scatter(at::full({}, 1), Reduce::sum); }),
            "reduce_scatter of [] among 1 ranks: the first dimension must divide evenly");
}

}  // namespace
}  // namespace kedge
