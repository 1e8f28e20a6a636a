#include "kedge/algo/online/critic_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RolloutRow row_of(int64_t prompt_length, int64_t length) {
  Rollout rollout{.prompt_length = prompt_length, .finished = true};
  for (int64_t i = 0; i < length; ++i) rollout.ids.push_back(static_cast<TokenId>(10 * prompt_length + i));
  RolloutRow row{.rollout = std::make_shared<const Rollout>(std::move(rollout))};
  row.values.assign(static_cast<size_t>(length - prompt_length), 0);
  row.returns = row.values;
  return row;
}

// Two rows of different lengths.
TEST(CriticBatch, AReturnStandsAtThePlaceBeforeItsToken) {
  RolloutRows rows = {row_of(3, 7), row_of(2, 5)};
  rows[0].values = {0.30F, 0.42F, 0.37F, 0.55F};
  rows[1].values = {0.05F, -0.20F, 0.12F};
  rows[0].returns = {1, 2, 3, 4};
  rows[1].returns = {5, 6, 7};
  rows.push_back(row_of(1, 3));
  rows[2].reward.error = "no idea";
  const CriticBatch batch = critic_batch(rows, 1);
  EXPECT_EQ(batch.num_rows, 2) << "one has no reward";
  EXPECT_EQ(batch.width, 7);
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{30, 31, 32, 33, 34, 35, 36, 20, 21, 22, 23, 24, 0, 0}));
  EXPECT_EQ(batch.mask, (std::vector<float>{0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(batch.returns, (std::vector<float>{0, 0, 1, 2, 3, 4, 0, 5, 6, 7, 0, 0}));
  EXPECT_EQ(batch.previous, (std::vector<float>{0, 0, 0.30F, 0.42F, 0.37F, 0.55F, 0, 0.05F, -0.20F, 0.12F, 0, 0}));
  const CriticBatch twice = critic_batch(rows, 2);
  EXPECT_EQ(twice.num_rows, 4);
  EXPECT_EQ(std::vector<float>(twice.returns.begin() + 12, twice.returns.end()), batch.returns);
  rows.erase(rows.begin(), rows.begin() + 2);
  EXPECT_EQ(critic_batch(rows, 1).num_rows, 0);
}

// Writes down what is asked of it.
class ScriptedCritic final : public ValueSource {
 public:
  std::vector<std::string> calls;
  std::optional<int64_t> restored = 0;

  [[nodiscard]] std::future<RolloutValues> values(Rollouts) override { return {}; }
  void train(CriticBatch batch) override { calls.push_back(str("train ", batch.num_rows)); }
  void finish_training() override { calls.emplace_back("finish"); }
  [[nodiscard]] std::shared_future<void> save(int64_t step, const std::vector<int64_t>& resumable) override {
    calls.push_back(str("save ", step));
    for (const int64_t one : resumable) calls.back() += str(" over ", one);
    std::promise<void> saved;
    saved.set_value();
    return saved.get_future().share();
  }
  std::optional<int64_t> restore(int64_t step) override {
    calls.push_back(str("restore ", step));
    return restored;
  }
};

TEST(CriticTraining, TheCriticIsRestoredOnceAndTrainedOnWhatHasAReward) {
  ScriptedCritic critic;
  CriticTraining training(critic, 2);
  training.restore_once(0);
  training.restore_once(0);
  RolloutRows rows = {row_of(1, 3), row_of(1, 3)};
  training.train(rows);
  for (RolloutRow& row : rows) row.reward.error = "no idea";
  training.train(rows);
  training.finish();
  EXPECT_THAT(critic.calls, ElementsAre("restore 0", "train 4", "finish"));
}

TEST(CriticTraining, ACriticThatWasTrainedMoreOrLessThanThePolicyIsRefused) {
  ScriptedCritic critic;
  critic.restored = 3;
  CriticTraining training(critic, 1);
  EXPECT_THAT(
      testing::error_of<Error>([&] { training.restore_once(0); }),
      HasSubstr("the policy's checkpoint was saved after 0 training calls of the critic, but the critic's save of that step has 3"));
}

// A checkpoint is complete when both are saved: the critic while the policy is written, or after it where training waits.
TEST(CriticTraining, PolicyAndCriticAreSavedTogether) {
  const testing::TempFolder temp;
  for (const bool copies : {true, false}) {
    ScriptedCritic critic;
    CriticTraining training(critic, 1);
    training.restore_once(0);
    training.train({row_of(1, 3)});
    training.note_saved({2, 4});
    StateSnapshot state(copies);
    const FolderWriter write = training.save(state, 5, [&]() -> FolderWriter {
      critic.calls.emplace_back("policy");
      return [&](const Path&) { critic.calls.emplace_back("policy written"); };
    });
    write(temp / "model");
    EXPECT_EQ(critic.calls,
              (copies ? std::vector<std::string>{"restore 0", "train 1", "save 5 over 2 over 4", "policy", "policy written"}
                      : std::vector<std::string>{"restore 0", "train 1", "policy", "policy written", "save 5 over 2 over 4"}));
  }
}

}  // namespace
}  // namespace kedge
