#include "kedge/net/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::IsEmpty;

constexpr double kDelay = 2000;

// Preferred 4 and 8, and a delay.
BatchRules rules() { return {.preferred = {4, 8}, .max_delay_us = kDelay}; }

Waiting young(int64_t rows, std::string_view key = "a", int64_t model = 0) {
  return {.model = model, .rows = rows, .shape_key = key, .age_us = 100};
}
Waiting old(int64_t rows, std::string_view key = "a", int64_t model = 0) {
  return {.model = model, .rows = rows, .shape_key = key, .age_us = kDelay};
}
Waiting barred(Waiting waiting) {
  waiting.may_run = false;
  return waiting;
}
Waiting train() { return {.model = 1, .rows = 1, .shape_key = "train", .alone = true}; }

BatchPlan plan(const std::vector<Waiting>& queue, std::vector<BatchRules> all = {rules(), rules()}) { return plan_batch(queue, all); }
std::vector<size_t> taken(const std::vector<Waiting>& queue, const std::vector<BatchRules>& all = {rules(), rules()}) {
  return plan(queue, all).take;
}

void expect_wait(const BatchPlan& plan, std::optional<double> wait_us) {
  EXPECT_THAT(plan.take, IsEmpty());
  EXPECT_EQ(plan.wait_us, wait_us);
}

TEST(BatchPlan, AnEmptyQueueWaitsForARequest) { expect_wait(plan({}), std::nullopt); }

TEST(BatchPlan, TooFewRowsWaitForCompanyUntilTheDelayIsOver) {
  expect_wait(plan({young(1), young(2)}), kDelay - 100);
  EXPECT_THAT(taken({old(1), young(2)}), ElementsAre(0, 1));
}

TEST(BatchPlan, APreferredNumberOfRowsRunsAtOnce) {
  EXPECT_THAT(taken({young(4)}), ElementsAre(0));
  EXPECT_THAT(taken({young(3), young(1)}), ElementsAre(0, 1));
  EXPECT_THAT(taken({young(3), young(1), young(2)}), ElementsAre(0, 1));  // the third may become 8 with others
  EXPECT_THAT(taken({young(3), young(1), young(2), young(2)}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(taken({young(3), young(1), young(2), young(2), young(4)}), ElementsAre(0, 1, 2, 3));  // not 12
}

TEST(BatchPlan, BeforeRowsWouldExceedTheLargestPreferredNumberTheyRun) {
  EXPECT_THAT(taken({young(7), young(2)}), ElementsAre(0));
  EXPECT_THAT(taken({young(4), young(3), young(2)}), ElementsAre(0, 1));
}

TEST(BatchPlan, AfterTheDelayEverythingThatFitsRunsTogether) {
  EXPECT_THAT(taken({old(7), young(2), young(4), young(100)}), ElementsAre(0, 1, 2, 3));
}

TEST(BatchPlan, ARequestOfMoreThanTheLargestPreferredNumberRunsAtOnce) {
  EXPECT_THAT(taken({young(9)}), ElementsAre(0));
  EXPECT_THAT(taken({young(9), young(1)}), ElementsAre(0, 1));
}

TEST(BatchPlan, ARequestThatCannotJoinEndsTheBatchAndTheWaiting) {
  EXPECT_THAT(taken({young(1), young(1), young(1, "b"), young(2)}), ElementsAre(0, 1));  // never skipped over
  EXPECT_THAT(taken({young(3), young(1), young(1), young(1, "b")}), ElementsAre(0, 1));  // the preferred part first
  EXPECT_THAT(taken({old(3), young(1), young(1), young(1, "b")}), ElementsAre(0, 1, 2));
}

TEST(BatchPlan, MergedRowsStayWithinTheirLimit) {
  BatchRules limited = rules();
  limited.max_rows = 6;
  EXPECT_THAT(taken({old(3), old(3), old(1)}, {limited}), ElementsAre(0, 1));
  EXPECT_THAT(taken({old(3), old(4), old(1)}, {limited}), ElementsAre(0));
  EXPECT_THAT(taken({old(7), old(1)}, {limited}), ElementsAre(0));         // one request is never cut
  EXPECT_THAT(taken({young(3), young(3)}, {limited}), ElementsAre(0, 1));  // full: nothing can join
}

TEST(BatchPlan, WithoutPreferredNumbersOnlyTheDelayDecides) {
  expect_wait(plan({young(1000)}, {{.max_delay_us = kDelay}}), kDelay - 100);
  EXPECT_THAT(taken({old(1), young(1)}, {{.max_delay_us = kDelay}}), ElementsAre(0, 1));
  EXPECT_THAT(taken({young(1), young(1)}, {{.preferred = {8}}}), ElementsAre(0, 1));  // no delay
}

TEST(BatchPlan, WhatIsNotToBeMergedRunsByItself) {
  BatchRules single = rules();
  single.merge = false;
  EXPECT_THAT(taken({young(1), young(1)}, {single}), ElementsAre(0));
  EXPECT_THAT(taken({old(1), old(1)}, {single}), ElementsAre(0));
  Waiting by_itself = young(1);
  by_itself.merge = false;
  EXPECT_THAT(taken({by_itself, young(1)}), ElementsAre(0));
  EXPECT_THAT(taken({young(1), by_itself, young(1)}), ElementsAre(0));
}

TEST(BatchPlan, TheOldestRequestDecidesWhichModelIsNext) {
  EXPECT_THAT(taken({old(1, "b", 1), old(1), old(1, "b", 1), old(2)}), ElementsAre(0, 2));
  EXPECT_THAT(taken({old(1), old(1, "b", 1), old(2)}), ElementsAre(0, 2));  // the other model's is passed over
}

TEST(BatchPlan, WhileOneModelWaitsForCompanyAnotherThatIsReadyGoesFirst) {
  EXPECT_THAT(taken({young(1), young(4, "b", 1), young(1)}), ElementsAre(1));
  BatchRules quick = rules();
  quick.max_delay_us = 150;
  expect_wait(plan({young(1), young(1, "b", 1)}, {rules(), quick}), 50);
  expect_wait(plan({young(1), young(1, "b", 1)}, {quick, rules()}), 50);
}

TEST(BatchPlan, NothingRunsBeforeARequestThatIsAloneAndCameEarlier) {
  EXPECT_THAT(taken({train(), old(4)}), ElementsAre(0));
  EXPECT_THAT(taken({old(1), train(), old(1)}), ElementsAre(0));
  EXPECT_THAT(taken({train(), train()}), ElementsAre(0));
  EXPECT_THAT(taken({young(1), train(), young(3)}), ElementsAre(0));  // the three cannot join, so the one need not wait
  EXPECT_THAT(taken({young(4), young(1), train()}), ElementsAre(0));  // the preferred part first
  EXPECT_THAT(taken({young(1), young(1, "b", 1), train()}), ElementsAre(0));
  expect_wait(plan({barred(train()), old(4)}), std::nullopt);
  EXPECT_THAT(taken({old(1), barred(train()), old(4)}), ElementsAre(0));
}

TEST(BatchPlan, RequestsThatMayNotRunYetArePassedOver) {
  EXPECT_THAT(taken({barred(old(1)), old(2), barred(old(1)), old(3)}), ElementsAre(1, 3));
  EXPECT_THAT(taken({barred(old(1, "b")), old(2), old(2)}), ElementsAre(1, 2));
  EXPECT_THAT(taken({barred(old(1)), train(), old(1)}), ElementsAre(1));  // what it waits for may be the training
  expect_wait(plan({barred(old(1)), barred(old(4))}), std::nullopt);
  expect_wait(plan({barred(old(1)), young(1)}), kDelay - 100);
}

TEST(BatchPlan, AnUnknownModelIsABug) {
  EXPECT_EQ(error_of<Bug>([] { return plan({young(1, "a", 2)}); }), "no model 2");
}

// Requests arrive, some alone, some waiting for a number of those to have run, while others are carried out. What is asked of every plan is
// checked against the queue as it stands.
class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) {
      BatchRules one{.max_delay_us = static_cast<double>(draw(4) * 100), .max_rows = draw(2) * 12, .merge = draw(6) > 0};
      for (int64_t size = draw(3); size > 0; --size) one.preferred.push_back(size * 4);
      rules_.push_back(one);
    }
  }

  void run(int num_arrivals) {
    int idle = 0;
    for (int arrived = 0; arrived < num_arrivals || !queue_.empty();) {
      if (arrived < num_arrivals && draw(3) > 0) arrive(), ++arrived;
      if (draw(2) > 0 && arrived < num_arrivals) continue;
      idle = step() ? 0 : idle + 1;
      ASSERT_LT(idle, 1000) << "nothing runs although requests wait";
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  struct Entry {
    Waiting waiting;
    double arrived_us;
    int64_t wanted_alone = 0;  // may run when as many of those that are alone have
  };

  int64_t draw(int64_t below) { return std::uniform_int_distribution<int64_t>(0, below - 1)(random_); }

  void arrive() {
    static constexpr std::string_view kKeys[] = {"a", "b"};
    Entry entry{.waiting = {.model = draw(3), .rows = 1 + draw(6), .shape_key = kKeys[draw(2)], .merge = draw(10) > 0},
                .arrived_us = now_us_};
    entry.waiting.alone = draw(12) == 0;
    // At most one more than those that stand before it; with the one that comes next it may run.
    if (!entry.waiting.alone) entry.wanted_alone = num_alone_arrived_ + (draw(8) == 0 ? 1 : 0);
    if (entry.waiting.alone) ++num_alone_arrived_;
    queue_.push_back(entry);
    // What waits for a training that never comes is not starved by us.
    if (entry.wanted_alone > num_alone_arrived_) {
      queue_.push_back({.waiting = {.model = draw(3), .alone = true}, .arrived_us = now_us_});
      ++num_alone_arrived_;
    }
  }

  // False where nothing was to be run.
  bool step() {
    std::vector<Waiting> waiting;
    for (Entry& entry : queue_) {
      entry.waiting.age_us = now_us_ - entry.arrived_us;
      entry.waiting.may_run = entry.wanted_alone <= num_alone_run_;
      waiting.push_back(entry.waiting);
    }
    const BatchPlan plan = plan_batch(waiting, rules_);
    check(waiting, plan);
    if (plan.take.empty()) {
      now_us_ += plan.wait_us.value_or(1);
      return false;
    }
    if (waiting[plan.take.front()].alone) ++num_alone_run_;
    for (auto i = plan.take.rbegin(); i != plan.take.rend(); ++i) queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(*i));
    now_us_ += static_cast<double>(draw(200));
    return true;
  }

  void check(const std::vector<Waiting>& waiting, const BatchPlan& plan) const {
    const auto barrier =
        static_cast<size_t>(std::find_if(waiting.begin(), waiting.end(), [](const Waiting& one) { return one.alone; }) - waiting.begin());
    std::vector<size_t> runnable;
    for (size_t i = 0; i < std::min(waiting.size(), barrier + 1); ++i)
      if (waiting[i].may_run) runnable.push_back(i);
    if (plan.take.empty()) {
      EXPECT_EQ(plan.wait_us.has_value(), !runnable.empty());
      EXPECT_GT(plan.wait_us.value_or(1), 0);
      EXPECT_EQ(barrier, waiting.size()) << "a request that is alone was kept waiting";
      return;
    }
    // Nothing that waited long enough, and nothing that is alone, is passed by what came later.
    const Waiting& oldest = waiting[runnable.front()];
    const bool is_first = oldest.alone || oldest.age_us >= rules_[static_cast<size_t>(oldest.model)].max_delay_us;
    EXPECT_TRUE(!is_first || plan.take.front() == runnable.front());
    EXPECT_LE(plan.take.back(), barrier);
    // The first of its model that may run, without a gap.
    const Waiting& first = waiting[plan.take.front()];
    std::vector<size_t> same_model;
    for (const size_t i : runnable)
      if (waiting[i].model == first.model && (first.alone || !waiting[i].alone)) same_model.push_back(i);
    ASSERT_LE(plan.take.size(), same_model.size());
    EXPECT_TRUE(std::equal(plan.take.begin(), plan.take.end(), same_model.begin()));
    if (plan.take.size() == 1) return;
    const BatchRules& rule = rules_[static_cast<size_t>(first.model)];
    int64_t rows = 0;
    for (const size_t i : plan.take) {
      EXPECT_TRUE(rule.merge && waiting[i].merge && !waiting[i].alone && waiting[i].shape_key == first.shape_key);
      rows += waiting[i].rows;
    }
    EXPECT_TRUE(rule.max_rows == 0 || rows <= rule.max_rows);
  }

  std::mt19937 random_;
  std::vector<BatchRules> rules_;
  std::deque<Entry> queue_;
  double now_us_ = 0;
  int64_t num_alone_arrived_ = 0, num_alone_run_ = 0;
};

TEST(BatchPlan, HoldsItsPromisesWhateverArrives) {
  for (uint32_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation(seed).run(200);
  }
}

// Would not end within the test's time if a plan took longer than one pass over the queue.
TEST(BatchPlan, ALongQueueIsReadOnce) {
  std::vector<Waiting> queue(300'000, old(1));
  for (size_t i = 0; i < queue.size(); i += 3) queue[i].may_run = false;
  EXPECT_EQ(taken(queue).size(), 200'000U);
}

}  // namespace
}  // namespace kedge
