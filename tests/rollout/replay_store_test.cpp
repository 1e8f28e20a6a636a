#include "kedge/rollout/replay_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/rollout/recorded_sources.h"

#include "tests/support/expect_error.h"
#include "tests/support/ppo_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kSteps = 4;

// A run of some steps, whose trainer is played its own records again from the start.
template <typename Toy, typename Make>
void expect_replays(Make&& make) {
  Toy toy;
  const Path folder = toy.temp / "run";
  {
    const auto trainer = make(toy, OnlineParts{toy.parts(folder)});
    for (int64_t step = 0; step < kSteps; ++step) static_cast<void>(trainer->train_step());
  }
  Toy again;
  ReplayStore store(folder / "rollouts", 1 << 20, 0);
  OnlineParts parts = again.parts();
  parts.store = &store;
  const auto trainer = make(again, std::move(parts));
  const auto look = [&] {
    store.look_closely({.add_logprobs =
                            [&](RolloutRows& rows) {
                              std::vector<int64_t> places, lengths;
                              for (size_t i = 0; i < rows.size(); ++i)
                                places.push_back(static_cast<int64_t>(i)), lengths.push_back(rows[i].rollout->length());
                              trainer->policy().logprobs(plan_passes(places, lengths, 100), rows);
                            },
                        .rewards = &again.rewards,
                        .draws = true});
  };
  for (int64_t step = 0; step < kSteps; ++step) {
    look();
    static_cast<void>(trainer->train_step());
    const StepComparison& comparison = store.comparison();
    EXPECT_TRUE(comparison.matches()) << step << ": " << blame_of(comparison);
    for (const char* name :
         {"weights before", "prompts and settings", "answers", "engine log-probs", "rewards", "advantages", "update loss", "weights after"})
      EXPECT_NE(comparison.find(name), nullptr) << name;
  }
  EXPECT_TRUE(at::equal(again.model->trained().flat_master(), toy.model->trained().flat_master()));
}

TEST(ReplayStore, ReinforceReplaysToTheBit) {
  expect_replays<testing::OnlineToy>(
      [](testing::OnlineToy& toy, OnlineParts parts) { return std::make_unique<ReinforceTrainer>(std::move(parts), toy.reinforce); });
}

TEST(ReplayStore, RejectionSamplingReplaysToTheBit) {
  expect_replays<testing::OnlineToy>(
      [](testing::OnlineToy& toy, OnlineParts parts) { return std::make_unique<RSTrainer>(std::move(parts), toy.rs); });
}

// The critic's values come from the record, and its warm-up rounds, which have none, are passed over.
TEST(ReplayStore, PpoReplaysWithoutItsCriticAndItsWarmups) {
  testing::PpoToy toy;
  toy.ppo.trainer.loop.critic_warmup_steps = 2;
  const Path folder = toy.temp / "run";
  auto ran = toy.ppo_trainer(folder);
  for (int64_t step = 0; step < kSteps; ++step) static_cast<void>(ran->train_step());
  ran->finish();
  ran.reset();  // all is on disk

  testing::OnlineToy again;
  again.ppo = toy.ppo;
  ReplayStore store(folder / "rollouts", 1 << 20, 0);
  RecordedCritic critic([&](const Rollout& rollout) { return store.find(rollout); });
  ValueCollector collector(critic);
  OnlineParts parts = again.parts();
  parts.store = &store;
  parts.values = &collector;
  PPOTrainer trainer(std::move(parts), again.ppo);
  for (int64_t step = 0; step < kSteps; ++step) {
    store.look_closely({.rewards = &again.rewards, .draws = true});
    static_cast<void>(trainer.train_step());
    EXPECT_TRUE(store.comparison().matches()) << step << ": " << blame_of(store.comparison());
    EXPECT_NE(store.comparison().find("returns"), nullptr);
  }
}

// A run of two steps with records, to be changed.
struct ChangedRun {
  testing::OnlineToy toy, again;
  Path records = toy.temp / "run" / "rollouts";

  ChangedRun() {
    const auto trainer = toy.reinforce_trainer(toy.temp / "run");
    for (int step = 0; step < 2; ++step) static_cast<void>(trainer->train_step());
  }
  [[nodiscard]] RecordedStep recorded(int64_t step) const { return read_recorded_step(records, step); }
  void write(const RecordedStep& step) const {
    write_atomic(record_path(records, step.header.step), format_record(step.header, step.rows));
  }
  // Of the first step that does not match, if one does not.
  [[nodiscard]] std::optional<StepComparison> first_other(ReplayStore& store) {
    OnlineParts parts = again.parts();
    parts.store = &store;
    ReinforceTrainer trainer(std::move(parts), again.reinforce);
    for (int step = 0; step < 2; ++step) {
      store.look_closely({.rewards = &again.rewards});
      static_cast<void>(trainer.train_step());
      if (!store.comparison().matches()) return store.comparison();
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<StepComparison> first_other() {
    ReplayStore store(records, 1 << 20, 0);
    return first_other(store);
  }
};

TEST(ReplayStore, FindsAChangedToken) {
  ChangedRun run;
  RecordedStep step = run.recorded(1);
  Rollout rollout = *step.rows[2].rollout;
  rollout.ids.back() ^= 1;
  step.rows[2].rollout = std::make_shared<const Rollout>(rollout);
  run.write(step);
  const auto other = run.first_other();
  ASSERT_TRUE(other);
  EXPECT_EQ(other->step, 1);
  EXPECT_GT(other->find("reference log-probs")->num_differ, 0);
  EXPECT_EQ(other->find("reference log-probs")->place.answer, 2);
  EXPECT_GT(other->find("weights after")->num_differ, 0);
  EXPECT_EQ(other->find("weights before")->num_differ, 0);
}

TEST(ReplayStore, FindsAChangedReward) {
  ChangedRun run;
  RecordedStep step = run.recorded(0);
  step.rows[1].reward.value += 0.125;
  run.write(step);
  const auto other = run.first_other();
  ASSERT_TRUE(other);
  EXPECT_EQ(other->step, 0);
  EXPECT_EQ(other->find("rewards")->num_differ, 1);
  EXPECT_EQ(other->find("rewards")->place.answer, 1);
  EXPECT_THAT(blame_of(*other), StartsWith("the record's rewards"));
}

TEST(ReplayStore, AStepWithoutARecordIsGeneratedAnew) {
  ChangedRun run;
  std::filesystem::remove(record_path(run.records, 0));
  ReplayStore store(run.records, 1 << 20, 0);
  EXPECT_FALSE(run.first_other(store));
  EXPECT_EQ(store.comparison().find("weights before")->num_differ, 0);  // of step 1, after one that was drawn again
  EXPECT_GT(run.again.rewards.num_asked, 0);
}

TEST(ReplayStore, RefusesRecordsThatNoStepCouldComeOf) {
  ChangedRun run;
  const auto error_of = [&](int64_t vocab_size, auto&& change) {
    RecordedStep step = run.recorded(0);
    const RecordedStep whole = step;
    change(step);
    run.write(step);
    ReplayStore store(run.records, vocab_size, 0);
    const std::string error = testing::error_of([&] { return run.first_other(store).has_value(); });
    run.write(whole);
    return error;
  };
  const std::string name = record_path(run.records, 0).string();
  EXPECT_THAT(error_of(1 << 20, [](RecordedStep& step) { step.rows[1].slot = 4; }), StartsWith(name + ":3: slot 4 of a step of 4 prompts"));
  EXPECT_THAT(error_of(1 << 20,
                       [](RecordedStep& step) {
                         step.rows[0] = {.rollout = std::make_shared<const Rollout>(Rollout{.ids = {1}, .logprobs = {-1}})};
                       }),
              StartsWith(name + ":2: an answer without a prompt"));
  EXPECT_THAT(error_of(2, [](RecordedStep&) {}), HasSubstr("but the network has ids below 2"));
  EXPECT_THAT(error_of(1 << 20,
                       [](RecordedStep& step) {
                         Rollout rollout = *step.rows[0].rollout;
                         rollout.logprobs.clear();
                         step.rows[0].rollout = std::make_shared<const Rollout>(rollout);
                       }),
              HasSubstr("\"engine_logprobs\" has 0 numbers for"));
  run.write({.header = {.step = 0, .fingerprint = "f"}, .rows = {}});
  std::filesystem::rename(record_path(run.records, 0), record_path(run.records, 1));
  EXPECT_THAT(testing::error_of([&] { return read_recorded_step(run.records, 1).rows.size(); }),
              HasSubstr(":1: has the answers of step 0"));
}

}  // namespace
}  // namespace kedge
