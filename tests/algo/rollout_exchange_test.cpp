#include "kedge/algo/rollout_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;

// What rank `rank` of two knows of four answers, two to each of two prompts: those of its own slot.
AnswerRows own_rows(int rank) {
  AnswerRows rows;
  for (int64_t sample : {1, 0}) {
    Rollout rollout{.prompt_id = 40 + rank,
                    .sample = sample,
                    .ids = {1, 2, static_cast<TokenId>(10 * rank + sample)},
                    .prompt_length = 2,
                    .finished = sample == 1,
                    .logprobs = {-0.1F * static_cast<float>(rank + 1)},
                    .prompt = "question",
                    .response = rank == 0 ? "" : "answer"};
    rows.push_back({.rollout = std::make_shared<const Rollout>(std::move(rollout)), .slot = rank});
  }
  return rows;
}

TEST(RolloutExchange, AloneItOnlySorts) {
  const AnswerRows rows = exchange_rollouts(Group::single(), own_rows(1));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rollout->sample, 0);
  EXPECT_EQ(rows[1].rollout->sample, 1);
}

}  // namespace
}  // namespace kedge
