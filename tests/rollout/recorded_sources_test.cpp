#include "kedge/rollout/recorded_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// One recorded answer, and one that is not.
struct Records {
  std::shared_ptr<const Rollout> known = testing::shared({.prompt_id = 1, .ids = {5, 6, 0, 7}, .prompt_length = 2});
  std::shared_ptr<const Rollout> unknown = testing::shared({.prompt_id = 2, .ids = {5, 0}, .prompt_length = 1});
  RolloutRow row{.rollout = known,
                 .reward = {.value = 2, .parts = {{"tone", 1.5}, {"tone/a", 0.5}, {"tones", 9}, {"watch/size", 3}}},
                 .values = {0.25F, 0.5F}};
  FindRecorded find = [this](const Rollout& rollout) { return &rollout == known.get() ? &row : nullptr; };
};

TEST(RecordedCritic, SaysWhatTheRecordSays) {
  Records records;
  RecordedCritic critic(records.find);
  EXPECT_FALSE(critic.learns());
  const RolloutValues said = critic.values({records.known}).get();
  ASSERT_EQ(said.values.size(), 1U);
  EXPECT_THAT(said.values[0], ElementsAre(0, 0.25F, 0.5F));  // the prompt's are not known, and nobody looks at them
  critic.train({});
  critic.finish_training();
  critic.restore(3);
  critic.save(3, {}).get();
  EXPECT_THAT(testing::error_of([&] { return critic.values({records.unknown}).get(); }), StartsWith("prompt 2: no values"));
}

TEST(RecordedReward, IsOneSourcesPart) {
  Records records;
  RecordedReward tone(records.find, "reward.sources.tone", "tone"), size(records.find, "reward.watch.size", "watch/size");
  const std::vector<RowReward> said = tone.submit({records.known}).get();
  EXPECT_EQ(said.at(0).value, 1.5);
  EXPECT_FALSE(said[0].failed());
  EXPECT_EQ(said[0].parts, (std::vector<std::pair<std::string, double>>{{"a", 0.5}}));
  EXPECT_EQ(size.submit({records.known}).get().at(0).value, 3);
  EXPECT_THAT(testing::error_of([&] { return tone.submit({records.unknown}).get(); }),
              StartsWith("prompt 2: the reward from reward.sources.tone"));
}

TEST(RecordedReward, FailsWhereTheSourceFailed) {
  Records records;
  records.row.reward = {.error = "no reply", .parts = {{"tone", 1}}};
  RecordedReward tone(records.find, "reward.sources.tone", "tone"), judge(records.find, "reward.sources.judge", "judge");
  EXPECT_FALSE(tone.submit({records.known}).get().at(0).failed());
  EXPECT_EQ(judge.submit({records.known}).get().at(0).error, "no reply");
}

}  // namespace
}  // namespace kedge
