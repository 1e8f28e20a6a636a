#include "kedge/rollout/value_collector.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

// Answers when it is asked to; a value is 100 for every call plus the id after which it stands.
class SlowCritic : public ValueSource {
 public:
  bool gives_rewards = false;
  int64_t num_calls = 0;
  std::string problem = {}, training_problem = {};

  std::future<RolloutValues> values(Rollouts rollouts) override {
    ++num_calls;
    return std::async(std::launch::deferred, [this, rollouts, call = num_calls] {
      if (!problem.empty()) throw Error(problem);
      RolloutValues result;
      for (const auto& rollout : rollouts) {
        std::vector<float> values(rollout->ids.begin(), rollout->ids.end() - 1);
        for (float& value : values) value += static_cast<float>(100 * call);
        result.values.push_back(std::move(values));
        if (gives_rewards) result.rewards.push_back({.value = static_cast<double>(1000 * call + rollout->prompt_id)});
      }
      return result;
    });
  }
  void train(CriticBatch) override {}
  void finish_training() override {
    if (!training_problem.empty()) throw Error(training_problem);
  }
  std::shared_future<void> save(int64_t, const std::vector<int64_t>&) override { return {}; }
  std::optional<int64_t> restore(int64_t) override { return std::nullopt; }
};

RolloutRow answered_row(int64_t prompt, TokenIds ids, int64_t prompt_length) {
  return {.rollout = std::make_shared<const Rollout>(Rollout{.prompt_id = prompt, .ids = std::move(ids), .prompt_length = prompt_length}),
          .slot = prompt};
}

RolloutRows three_rows() { return {answered_row(0, {1, 2, 3, 4}, 2), answered_row(1, {5, 6}, 1), answered_row(2, {7, 8, 9}, 2)}; }

using Values = std::vector<float>;

TEST(ValueCollector, ValuesComeToTheirAnswersWhateverTheyWereAskedWith) {
  SlowCritic critic;
  ValueCollector collector(critic);
  RolloutRows rows = three_rows();
  collector.ask({rows[2].rollout, rows[0].rollout});
  collector.ask({rows[1].rollout});
  collector.take(Group::single(), rows);
  EXPECT_EQ(rows[0].values, (Values{102, 103})) << "before its ids 3 and 4";
  EXPECT_EQ(rows[1].values, (Values{205}));
  EXPECT_EQ(rows[2].values, (Values{108}));
  EXPECT_EQ(critic.num_calls, 2);
}

TEST(ValueCollector, WhereNobodyAskedItDoes) {
  SlowCritic critic;
  ValueCollector collector(critic);
  RolloutRows rows = three_rows();
  collector.take(Group::single(), rows);
  EXPECT_EQ(rows[2].values, (Values{108}));
  EXPECT_EQ(critic.num_calls, 1);
}

TEST(ValueCollector, RewardsComeWithTheValues) {
  SlowCritic critic;
  critic.gives_rewards = true;
  ValueCollector collector(critic);
  const auto rewards = collector.rewards();
  RolloutRows rows = three_rows();
  collector.ask({rows[0].rollout, rows[1].rollout});
  std::future<std::vector<RowReward>> some = rewards->submit({rows[1].rollout});
  EXPECT_EQ(some.get().at(0).value, 1001);
  EXPECT_EQ(rewards->submit({rows[0].rollout}).get().at(0).value, 1000);
  EXPECT_EQ(critic.num_calls, 1) << "asked once for both";
  EXPECT_EQ(rewards->submit({rows[0].rollout}).get().at(0).value, 2000) << "once more: it is asked anew";
  EXPECT_EQ(rewards->submit({rows[2].rollout}).get().at(0).value, 3002) << "nobody wanted its value";
  collector.take(Group::single(), rows);
  EXPECT_EQ(rows[0].values, (Values{102, 103})) << "the values that were asked for first";
}

TEST(ValueCollector, WhatWentWrongEndsTheWait) {
  SlowCritic critic;
  ValueCollector collector(critic);
  RolloutRows rows = three_rows();
  critic.problem = "it gave values that are not finite";
  collector.ask({rows[0].rollout});
  EXPECT_EQ(error_of<Error>([&] { collector.take(Group::single(), rows); }), critic.problem);
  critic.training_problem = "its training failed";
  collector.ask({rows[0].rollout});
  EXPECT_EQ(error_of<Error>([&] { collector.take(Group::single(), rows); }), "its training failed");
}

}  // namespace
}  // namespace kedge
