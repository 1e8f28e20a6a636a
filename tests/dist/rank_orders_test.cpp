// Of the 2 or 3 ranks that mpirun has started.
#include "kedge/dist/rank_orders.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rank;
using testing::world;

TEST(RankOrders, TheOthersGetWhatRank0Gives) {
  const RankOrders orders(world());
  for (const std::string& order : {std::string("first"), std::string(), std::string(100000, 'x')}) {
    if (rank() == 0) {
      orders.give(order);
    } else {
      EXPECT_EQ(orders.next(), order);
    }
  }
}

TEST(RankOrders, WhatFailsOnOneRankFailsOnAll) {
  const RankOrders orders(world());
  const auto carry_out = [&](int failing) {
    orders.carry_out("adding", [&] {
      if (rank() == failing) throw UsageError("no room");
    });
  };
  for (int failing = 0; failing < world().size(); ++failing) {
    if (rank() == failing) {
      EXPECT_EQ(error_of<UsageError>([&] { carry_out(failing); }), "no room");
    } else {
      EXPECT_EQ(error_of<Error>([&] { carry_out(failing); }), str("rank ", failing, ": adding failed: no room"));
    }
    EXPECT_NO_THROW(carry_out(-1)) << "the next one works";
  }
}

TEST(RankOrders, WhereAllFailEachHasItsOwnError) {
  const RankOrders orders(world());
  EXPECT_EQ(error_of<Error>([&] { orders.carry_out("adding", [&] { throw Error(str("of ", rank())); }); }), str("of ", rank()));
}

TEST(RankOrders, OneRankAloneDoesItItself) {
  const RankOrders orders(Group::single());
  int count = 0;
  orders.give("nobody hears it");
  orders.carry_out("counting", [&] { ++count; });
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace kedge
