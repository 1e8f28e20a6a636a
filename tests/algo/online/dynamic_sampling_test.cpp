#include "kedge/algo/online/dynamic_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;

RolloutRows group(int64_t slot, const std::vector<double>& rewards) {
  RolloutRows rows;
  for (const double reward : rewards) rows.push_back({.slot = slot, .reward = {.value = reward}});
  return rows;
}

RolloutRows batch(const std::vector<RolloutRows>& groups) {
  RolloutRows rows;
  for (const RolloutRows& one : groups) rows.insert(rows.end(), one.begin(), one.end());
  return rows;
}

std::vector<int64_t> slots_of(const RolloutRows& rows) {
  std::vector<int64_t> slots;
  for (const RolloutRow& row : rows) slots.push_back(row.slot);
  return slots;
}

TEST(DynamicSampling, ASpreadIsADifferenceAmongRewardsThatArrived) {
  EXPECT_TRUE(has_spread(group(0, {1, 1, 0})));
  EXPECT_FALSE(has_spread(group(0, {1, 1, 1})));
  RolloutRows failed = group(0, {1, 1, 0});
  failed[2].reward.error = "no server";
  EXPECT_FALSE(has_spread(failed));
  EXPECT_FALSE(has_spread({}));
}

// The only response that differs was cut off: nobody learns from it.
TEST(DynamicSampling, WhatIsNotTrainedOnHasNoPartInTheSpread) {
  RolloutRows rows = group(0, {1, 1, 0});
  for (size_t i = 0; i < rows.size(); ++i) rows[i].rollout = std::make_shared<const Rollout>(Rollout{.finished = i < 2});
  EXPECT_TRUE(has_spread(rows));
  EXPECT_FALSE(has_spread(rows, true));
  GroupCollector collector(1, true);
  collector.add(rows);
  EXPECT_FALSE(collector.is_full());
}

TEST(DynamicSampling, TakesTheFirstGroupsThatHaveASpread) {
  GroupCollector collector(2);
  collector.add(batch({group(0, {1, 1}), group(1, {0, 1})}));
  EXPECT_FALSE(collector.is_full());
  collector.add(batch({group(2, {3, 2}), group(3, {0, 1})}));
  EXPECT_TRUE(collector.is_full());
  const RolloutRows rows = collector.take();
  EXPECT_THAT(slots_of(rows), ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(num_batches_of(rows, 2), 2);
}

// A record of the step then says how many batches it took.
TEST(DynamicSampling, FillsUpWithTheNewestOfThoseWithout) {
  GroupCollector collector(3);
  collector.add(batch({group(0, {1, 1}), group(1, {0, 1})}));
  collector.add(batch({group(2, {1, 1}), group(3, {5, 5})}));
  const RolloutRows rows = collector.take();
  EXPECT_THAT(slots_of(rows), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_EQ(num_batches_of(rows, 2), 2);
}

// Of the second group, only responses that do not count differ.
TEST(DynamicSampling, WhatHasNoSpreadIsNotTrainedOn) {
  RolloutRows rows = batch({group(0, {1, 0, 1}), group(1, {1, 1, 0}), group(2, {1, 1, 1})});
  for (RolloutRow& row : rows) row.trains = true;
  rows[2].trains = rows[5].trains = false;
  leave_out_filling(rows);
  std::vector<bool> trains;
  for (const RolloutRow& row : rows) trains.push_back(row.trains);
  EXPECT_THAT(trains, ElementsAre(true, true, false, false, false, false, false, false, false));
}

}  // namespace
}  // namespace kedge
