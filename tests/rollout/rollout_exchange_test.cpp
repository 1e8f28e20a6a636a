#include "kedge/rollout/rollout_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

// What rank `rank` of two knows of four answers, two to each of two prompts: those of its own slot.
RolloutRows own_rows(int rank) {
  RolloutRows rows;
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
  const RolloutRows rows = exchange_rollouts(Group::single(), own_rows(1));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rollout->sample, 0);
  EXPECT_EQ(rows[1].rollout->sample, 1);
}

TEST(RolloutExchange, AStepWithoutAllItsAnswersIsAnError) {
  RolloutRows rows = own_rows(0);
  for (RolloutRow& row : own_rows(1)) rows.push_back(std::move(row));
  check_all_answered(rows, 2, 2);
  EXPECT_EQ(testing::error_of<Error>([&] {
              check_all_answered({rows[0], rows[1]}, 2, 2);
            }),
            "prompt 1 of 2 in this step has fewer than 2 answers: no rank was given it by the work queue");
  EXPECT_EQ(testing::error_of<Error>([&] {
              check_all_answered({rows[0], rows[2], rows[3]}, 2, 2);
            }),
            "prompt 0 of 2 in this step has fewer than 2 answers: no rank was given it by the work queue");
  rows.push_back(rows[3]);
  EXPECT_EQ(testing::error_of<Error>([&] { check_all_answered(rows, 2, 2); }),
            "5 answers to 2 prompts, 2 each: two ranks answered the same one");
}

}  // namespace
}  // namespace kedge
