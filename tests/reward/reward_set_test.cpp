#include "kedge/reward/reward_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <limits>

#include "kedge/core/error.h"
#include "kedge/core/stop.h"
#include "kedge/text/unicode/regex.h"

#include "tests/support/expect_error.h"
#include "tests/support/reward_toys.h"
#include "tests/support/rollouts.h"

namespace kedge {
namespace {

using ::testing::StartsWith;
using Parts = std::vector<std::pair<std::string, double>>;

// Rewards the response's number; "flaky N" fails N times before it gives 1, "nan" is no number.
class ToySource : public RewardSource {
 public:
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override {
    ++num_calls;
    num_rows += static_cast<int64_t>(rollouts.size());
    std::promise<std::vector<RowReward>> promise;
    if (is_interrupted) {
      promise.set_exception(std::make_exception_ptr(Interrupted(SIGTERM, "SIGTERM came")));
      return promise.get_future();
    }
    if (!broken.empty()) {
      promise.set_exception(std::make_exception_ptr(Error(broken)));
      return promise.get_future();
    }
    std::vector<RowReward> rewards;
    for (const auto& rollout : rollouts) rewards.push_back(reward(rollout->response));
    promise.set_value(std::move(rewards));
    return promise.get_future();
  }

  std::atomic<int64_t> num_calls = 0, num_rows = 0;
  std::string broken;
  bool is_interrupted = false;

 private:
  RowReward reward(const std::string& response) {
    if (response == "nan") return {.value = std::numeric_limits<double>::quiet_NaN()};
    if (!response.starts_with("flaky ")) return {.value = std::stod(response), .parts = {{"half", std::stod(response) / 2}}};
    if (failures_++ < std::stoi(response.substr(6))) return {.error = "not now"};
    return {.value = 1};
  }
  int failures_ = 0;
};

// A set whose sources of kind http are toys; `toy` is the last one made.
struct ToySet {
  explicit ToySet(const std::string& yaml)
      : set(testing::load_rewards("reward: {" + yaml + "}"), [this](const std::string& made, const RewardSourceConfig&) {
          auto source = std::make_unique<ToySource>();
          toy = source.get();
          key = made;
          return source;
        }) {}

  std::vector<RowReward> rewards(const std::vector<Rollout>& rollouts) {
    Rollouts all;
    for (const Rollout& rollout : rollouts) all.push_back(testing::shared(rollout));
    return set.submit(std::move(all)).get();
  }
  RowReward reward(const Rollout& rollout) { return rewards({rollout}).at(0); }

  ToySource* toy = nullptr;
  std::string key;
  RewardSet set;
};

constexpr const char* kToy = "toy: {kind: http, url: x}";

TEST(RewardSet, IsTheWeightedSumWithEachComponent) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  ToySet toys(std::string("sources: {") + kToy +
              ", o: {kind: regex, pattern: '0', use: count, weight: 10, clip: [0, 1]}}, watch: {long: {kind: length, weight: 5}}");
  EXPECT_EQ(toys.key, "reward.sources.toy");
  const RowReward reward = toys.reward(testing::rollout("300"));
  EXPECT_EQ(reward.error, "");
  EXPECT_EQ(reward.value, 310);  // the two zeros are clipped to 1, and what is watched does not count
  EXPECT_EQ(reward.parts, (Parts{{"o", 1}, {"toy", 300}, {"toy/half", 150}, {"watch/long", 2}}));
}

TEST(RewardSet, StandardisesThenScalesThenClips) {
  const std::string rest = ", standardization: {enable: true, mean: 4, std: 2}, scale: 3, clip: [-5, 5]";
  ToySet toys(std::string("sources: {") + kToy + "}" + rest);
  EXPECT_EQ(toys.reward(testing::rollout("6")).value, 3);
  EXPECT_EQ(toys.reward(testing::rollout("100")).value, 5);
  EXPECT_EQ(toys.reward(testing::rollout("-100")).value, -5);
  EXPECT_EQ(toys.reward(testing::rollout("100")).parts[0].second, 100);
}

TEST(RewardSet, RoutesRowsByTheirFields) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  ToySet toys(
      "sources: {a: {kind: regex, pattern: '', route: {task: [a, both]}}, b: {kind: regex, pattern: '', weight: 10, route: {task: [b, "
      "both]}},"
      " c: {kind: regex, pattern: '', weight: 100, route: {task: c, level: 2}}}, watch: {w: {kind: length, route: {task: b}}}");
  const auto rewards = toys.rewards({testing::rollout("", R"({"task": "a"})"), testing::rollout("", R"({"task": "b"})"),
                                     testing::rollout("", R"({"task": "both"})"), testing::rollout("", R"({"task": "c", "level": 2.0})")});
  EXPECT_EQ(rewards[0].value, 1);
  EXPECT_EQ(rewards[1].value, 10);
  EXPECT_EQ(rewards[2].value, 11);
  EXPECT_EQ(rewards[3].value, 100);
  EXPECT_EQ(rewards[0].parts, (Parts{{"a", 1}}));
  EXPECT_EQ(rewards[1].parts, (Parts{{"b", 1}, {"watch/w", 2}}));
}

TEST(RewardSet, ARowThatNobodyTakesEndsTheRun) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  ToySet toys(
      "sources: {a: {kind: regex, pattern: '', route: {task: a}}, c: {kind: regex, pattern: '', route: {task: c, level: 2}}},"
      " watch: {all: {kind: length}}");
  EXPECT_EQ(testing::error_of([&] {
              return toys.rewards({testing::rollout("", R"({"task": "a"})"), testing::rollout("", R"({"task": "code"})")});
            }),
            "prompt 7: no reward source takes a row where level is missing, task is \"code\"; reward.sources.a takes task: \"a\"; "
            "reward.sources.c takes level: 2 and task: \"c\"");
}

TEST(RewardSet, FailedRowsAreTriedAgainAlone) {
  ToySet toys(std::string("sources: {") + kToy + "}, retries: 2");
  const auto rewards = toys.rewards({testing::rollout("5"), testing::rollout("flaky 2"), testing::rollout("6")});
  EXPECT_EQ(rewards[0].value, 5);
  EXPECT_EQ(rewards[1].value, 1);
  EXPECT_EQ(rewards[2].value, 6);
  EXPECT_EQ(toys.toy->num_calls, 3);
  EXPECT_EQ(toys.toy->num_rows, 5);
}

TEST(RewardSet, ARowThatStaysWithoutARewardIsMasked) {
  ToySet toys(std::string("sources: {") + kToy + ", o: {kind: length}, n: {kind: number}}, retries: 1");
  const auto rewards =
      toys.rewards({testing::rollout("flaky 9", R"({"answer": 1})"), testing::rollout("nan"), testing::rollout("3", R"({"answer": 3})")});
  EXPECT_EQ(rewards[0].error, "reward.sources.toy: prompt 7: not now");
  EXPECT_EQ(rewards[0].parts, (Parts{{"n", 0}, {"o", 2}}));
  EXPECT_EQ(rewards[1].error,
            "reward.sources.n: prompt 7: its row has no field \"answer\": there is no row; reward.sources.toy: prompt 7: its reward is not "
            "a finite number");
  EXPECT_EQ(rewards[2].value, 6);
  EXPECT_EQ(toys.toy->num_calls, 2);
}

TEST(RewardSet, OrEndsTheRun) {
  ToySet toys(std::string("sources: {") + kToy + "}, retries: 0, on_failure: fail");
  EXPECT_EQ(testing::error_of<Error>([&] {
              return toys.rewards({testing::rollout("1"), testing::rollout("flaky 9")});
            }),
            "1 of 2 rows got no reward; the first: reward.sources.toy: prompt 7: not now");
  EXPECT_EQ(toys.reward(testing::rollout("4")).value, 4);
}

TEST(RewardSet, ASourceThatBreaksEndsTheRunUnlessItIsOnlyWatched) {
  ToySet trained(std::string("sources: {") + kToy + "}");
  trained.toy->broken = "the server is gone";
  EXPECT_EQ(testing::error_of<Error>([&] { return trained.reward(testing::rollout("1")); }), "the server is gone");
  ToySet watched(std::string("sources: {o: {kind: length}}, watch: {") + kToy + "}, on_failure: fail");
  watched.toy->broken = "the server is gone";
  EXPECT_EQ(watched.reward(testing::rollout("1")).parts, (Parts{{"o", 2}}));
  watched.toy->broken = "";
  EXPECT_EQ(watched.reward(testing::rollout("1")).parts, (Parts{{"o", 2}, {"watch/toy", 1}, {"watch/toy/half", 0.5}}));
}

TEST(RewardSet, ASignalEndsTheRunWhoeverWasAsked) {
  ToySet trained(std::string("sources: {") + kToy + "}, retries: 3");
  trained.toy->is_interrupted = true;
  EXPECT_EQ(testing::error_of<Interrupted>([&] { return trained.reward(testing::rollout("1")); }), "SIGTERM came");
  EXPECT_EQ(trained.toy->num_calls, 1) << "it is tried again";
  ToySet watched(std::string("sources: {o: {kind: length}}, watch: {") + kToy + "}");
  watched.toy->is_interrupted = true;
  EXPECT_EQ(testing::error_of<Interrupted>([&] { return watched.reward(testing::rollout("1")); }), "SIGTERM came");
}

TEST(RewardSet, RunsCommands) {
  ToySet toys("sources: {shell: {kind: command, command: 'while read line; do echo 0.5; done', workers: 2, weight: 4}}");
  const auto rewards = toys.rewards(std::vector<Rollout>(20, testing::rollout("x")));
  for (const RowReward& reward : rewards) EXPECT_EQ(reward.value, 2);
}

TEST(RewardSet, DoesNotWaitForACommandAtItsEnd) {
  std::future<std::vector<RowReward>> pending;
  {
    RewardSet set(testing::load_rewards("reward: {sources: {slow: {kind: command, command: sleep 1000}}}"));
    pending = set.submit({testing::shared(testing::rollout("x"))});
  }
  EXPECT_THAT(pending.get()[0].error, StartsWith("reward.sources.slow: prompt 7: closed before it replied"));
}

TEST(RewardSet, SaysWhichKindCannotBeHad) {
  EXPECT_EQ(testing::error_of(
                [] { return std::make_unique<RewardSet>(testing::load_rewards("reward: {sources: {a: {kind: model, folder: x}}}")); }),
            "reward.sources.a.kind: rewards of kind model are not available here");
}

}  // namespace
}  // namespace kedge
