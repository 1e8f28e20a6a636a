#include "kedge/algo/online/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kedge/config/config.h"
#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

HealthConfig window_of(int64_t window) { return {.health = {.window = window}}; }

// Steps, counted from 0, at which something was told.
std::vector<int> told_at(HealthWatch& watch, const std::string& name, const std::vector<double>& values) {
  std::vector<int> steps;
  for (size_t i = 0; i < values.size(); ++i)
    if (watch.look({{name, values[i]}})) steps.push_back(static_cast<int>(i));
  return steps;
}

TEST(Health, TellsThatThePolicyRunsAway) {
  HealthWatch watch(window_of(3));
  EXPECT_FALSE(watch.look({{"init_policy_kl", 1}}));
  EXPECT_FALSE(watch.look({{"init_policy_kl", 3}}));  // 2 in the mean, which is allowed
  EXPECT_THAT(watch.look({{"init_policy_kl", 4}}),
              Optional(std::string("KL run-away: the policy is 2.67 nats per token from the reference (mean over the last 3 steps); "
                                   "health.max_kl is 2")));
  HealthWatch at_once(window_of(3));
  EXPECT_THAT(at_once.look({{"init_policy_kl", 2.5}}),
              Optional(HasSubstr("2.5 nats per token from the reference (mean over the last step);")));
}

TEST(Health, TellsWhatLastsOnceAWindow) {
  HealthWatch watch(window_of(3));
  EXPECT_THAT(told_at(watch, "init_policy_kl", {9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0}), ElementsAre(0, 3, 6));
}

TEST(Health, TellsThatRewardsCollapse) {
  HealthWatch watch(window_of(2));
  const auto look = [&](double reward, double spread) { return watch.look({{"rewards", reward}, {"rewards_std", spread}}); };
  EXPECT_FALSE(look(0, 1));
  EXPECT_FALSE(look(1, 3));  // first window: standard deviations of 2 in the mean
  EXPECT_FALSE(look(6, 9));
  EXPECT_FALSE(look(8, 9));  // the best two steps: 7
  EXPECT_FALSE(look(0, 9));
  EXPECT_FALSE(look(6, 9));  // 3: fell by 4, which is allowed
  EXPECT_FALSE(look(0, 9));  // 3 again
  EXPECT_THAT(look(5, 9),
              Optional(std::string("reward collapse: the mean reward of the last 2 steps, 2.5, is 2.25 standard deviations below "
                                   "that of the best 2, 7; health.reward_drop is 2")));
}

TEST(Health, RewardsOfRejectionSamplingAreHeldAgainstTheSpreadOfSteps) {
  HealthWatch watch(window_of(2));
  // The first window with any spread is 0.1, 0.3: a standard deviation of 0.1 and a mean of 0.2, the best.
  EXPECT_THAT(told_at(watch, "global_rewards", {0.1, 0.1, 0.1, 0.3, 0.05, -0.02, 0.02}), ElementsAre(6));
}

TEST(Health, TellsThatEntropyCollapses) {
  HealthWatch watch(window_of(2));
  EXPECT_FALSE(watch.look({{"entropy", 1}}));
  EXPECT_FALSE(watch.look({{"entropy", 3}}));
  EXPECT_FALSE(watch.look({{"entropy", 0.2}}));
  EXPECT_FALSE(watch.look({{"entropy", 0.2}}));  // a tenth of 2 is allowed
  EXPECT_THAT(watch.look({{"entropy", 0.1}}),
              Optional(std::string("entropy collapse: 0.15 nats per token in the last 2 steps, and 2 in the first 2; "
                                   "health.min_entropy is 0.1 of it")));
}

TEST(Health, TellsAllThatIsWrongTogether) {
  HealthWatch watch(window_of(1));
  EXPECT_FALSE(watch.look({{"rewards", 5}, {"rewards_std", 1}, {"entropy", 1}, {"init_policy_kl", 0}}));
  const auto told = watch.look({{"rewards", 0}, {"rewards_std", 1}, {"entropy", 0.01}, {"init_policy_kl", 3}});
  ASSERT_TRUE(told);
  EXPECT_THAT(*told, ::testing::MatchesRegex("KL run-away: .*; reward collapse: .*; entropy collapse: .*"));
}

TEST(Health, ALimitOfZeroIsNone) {
  HealthWatch watch({.health = {.window = 1, .reward_drop = 0, .max_kl = 0, .min_entropy = 0}});
  EXPECT_FALSE(watch.look({{"rewards", 5}, {"rewards_std", 1}, {"entropy", 1}, {"init_policy_kl", 0}}));
  EXPECT_FALSE(watch.look({{"rewards", -500}, {"rewards_std", 1}, {"entropy", 0}, {"init_policy_kl", 300}}));
}

TEST(Health, LooksOnlyAtFiniteNumbersThatAreThere) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  HealthWatch watch(window_of(2));
  EXPECT_FALSE(watch.look({}));
  EXPECT_THAT(told_at(watch, "init_policy_kl", {kNan, kInfinity, 1, kNan, 1}), IsEmpty());
  EXPECT_THAT(told_at(watch, "rewards", {kNan, 1, kInfinity, 1, 1}), IsEmpty());  // equal rewards have no spread to fall by
  EXPECT_THAT(watch.look({{"init_policy_kl", 4}}), Optional(HasSubstr("2.5 nats")));
}

// Numbers of a run in which all goes wrong from time to time.
Metrics step_of(int step) {
  const double wave = (step * 7 % 13) / 13.0;
  return {{"rewards", step % 17 < 9 ? 3 + wave : -3 - wave},
          {"rewards_std", 0.5 + wave},
          {"init_policy_kl", 2.7 * wave + 0.6},
          {"entropy", step % 23 < 12 ? 1 + wave : 0.01 * wave}};
}

TEST(Health, ARestoredWatchSaysWhatOneSaysThatWasNeverStopped) {
  constexpr int kSteps = 60;
  HealthWatch unbroken(window_of(4));
  std::vector<std::optional<std::string>> said;
  std::vector<std::string> states;  // before each step, as a checkpoint keeps them
  for (int step = 0; step < kSteps; ++step) {
    states.push_back(unbroken.state().dump());
    said.push_back(unbroken.look(step_of(step)));
  }
  std::string all;
  for (const auto& one : said) all += one.value_or("");
  for (const char* kind : {"KL run-away", "reward collapse", "entropy collapse"}) ASSERT_THAT(all, HasSubstr(kind));
  for (int start = 0; start < kSteps; ++start) {
    HealthWatch restored(window_of(4));
    restored.restore(Json::parse(states[static_cast<size_t>(start)]));
    for (int step = start; step < kSteps; ++step)
      ASSERT_EQ(restored.look(step_of(step)), said[static_cast<size_t>(step)]) << start << " " << step;
  }
}

TEST(Health, AStateWithAnotherWindowGoesOn) {
  HealthWatch watch(window_of(3)), shorter(window_of(2)), longer(window_of(4));
  EXPECT_THAT(told_at(watch, "init_policy_kl", {0, 0, 1}), IsEmpty());
  shorter.restore(watch.state());
  longer.restore(watch.state());
  EXPECT_THAT(shorter.look({{"init_policy_kl", 4}}), Optional(HasSubstr("2.5 nats")));
  EXPECT_FALSE(longer.look({{"init_policy_kl", 4}}));
}

TEST(Health, RefusesAnotherState) {
  HealthWatch watch(window_of(3));
  EXPECT_EQ(testing::error_of([&] {
              watch.restore(Json::parse("{}"));
              return 0;
            }),
            "health state: no \"kl\" field");
  EXPECT_EQ(testing::error_of([&] {
              watch.restore(Json::parse(R"({"kl": {"quiet": "x"}})"));
              return 0;
            }),
            "health state: kl: expected an integer, found \"x\"");
}

struct Algorithm {
  HealthConfig health;
  void fields(auto&& field) { health.fields(field); }
};

TEST(Health, KeysStandAmongThoseOfAnAlgorithm) {
  Algorithm algorithm;
  static_cast<void>(load_section(describe(algorithm), ConfigText{"x.yaml", "{on_unhealthy: stop, health: {window: 5, max_kl: 0}}"}, {}));
  EXPECT_EQ(algorithm.health.on_unhealthy, OnUnhealthy::stop);
  EXPECT_EQ(algorithm.health.health.window, 5);
  EXPECT_EQ(algorithm.health.health.max_kl, 0);
  EXPECT_EQ(algorithm.health.health.reward_drop, 2);
}

}  // namespace
}  // namespace kedge
