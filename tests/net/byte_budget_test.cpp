#include "kedge/net/byte_budget.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(ByteBudget, TakesAllOrNothing) {
  ByteBudget budget(10);
  EXPECT_TRUE(budget.take(7));
  EXPECT_FALSE(budget.take(4));
  EXPECT_EQ(budget.left(), 3);
  budget.give_back(7);
  EXPECT_TRUE(budget.take(10));
  EXPECT_FALSE(budget.take(1));
}

}  // namespace
}  // namespace kedge
