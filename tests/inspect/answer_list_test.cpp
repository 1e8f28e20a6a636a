#include "kedge/inspect/answer_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Made {
  double reward = 0;
  std::string prompt = "Q";
  std::string response = "A";
  int64_t slot = 0, length = 1;
  double kl = 0;
};

RolloutRow row_of(const Made& made) {
  Rollout rollout{
      .ids = TokenIds(static_cast<size_t>(made.length), 1), .finished = made.length < 3, .prompt = made.prompt, .response = made.response};
  return {.rollout = testing::shared(std::move(rollout)),
          .slot = made.slot,
          .reward = {.value = made.reward},
          .reference = std::vector<float>(static_cast<size_t>(made.length)),
          .kl_mean = made.kl,
          .advantage = -made.reward};
}

RolloutRow failed() {
  RolloutRow row = row_of({.reward = 100});
  row.reward.error = "no reply";
  row.reference.clear();
  return row;
}

TEST(AnswerList, SortsByEachKeyFromEitherEnd) {
  const RolloutRows rows = {row_of({.reward = 1, .length = 3, .kl = 0.2}), failed(), row_of({.reward = 3, .length = 2, .kl = -0.1}),
                            row_of({.reward = 1, .length = 5, .kl = 0.3})};
  const auto chosen = [&](AnswerKey key, bool worst) { return choose_answers(rows, {.key = key, .worst = worst}); };
  EXPECT_THAT(chosen(AnswerKey::reward, false), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(chosen(AnswerKey::reward, true), ElementsAre(0, 3, 2, 1));
  EXPECT_THAT(chosen(AnswerKey::advantage, false), ElementsAre(0, 3, 2, 1));
  EXPECT_THAT(chosen(AnswerKey::kl, false), ElementsAre(3, 0, 2, 1));
  EXPECT_THAT(chosen(AnswerKey::kl, true), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(chosen(AnswerKey::length, false), ElementsAre(3, 0, 2, 1));
  EXPECT_THAT(chosen(AnswerKey::length, true), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(chosen(AnswerKey::order, false), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(chosen(AnswerKey::order, true), ElementsAre(3, 2, 1, 0));
}

TEST(AnswerList, TheLimitIsTakenBeforeTheOrderIsTurned) {
  const RolloutRows rows = {row_of({.reward = 1}), row_of({.reward = 3}), row_of({.reward = 2})};
  EXPECT_THAT(choose_answers(rows, {.limit = 2}), ElementsAre(1, 2));
  EXPECT_THAT(choose_answers(rows, {.reverse = true, .limit = 2}), ElementsAre(2, 1));
  EXPECT_THAT(choose_answers(rows, {.worst = true, .reverse = true, .limit = 2}), ElementsAre(2, 0));
  EXPECT_THAT(choose_answers(rows, {.limit = 9}), ElementsAre(1, 2, 0));
  EXPECT_THAT(choose_answers({}, {}), IsEmpty());
}

TEST(AnswerList, ANumberThatIsNoneComesLast) {
  const RolloutRows rows = {row_of({.reward = std::numeric_limits<double>::quiet_NaN()}), row_of({.reward = 1}), row_of({.reward = 2})};
  EXPECT_THAT(choose_answers(rows, {}), ElementsAre(2, 1, 0));
  EXPECT_THAT(choose_answers(rows, {.worst = true}), ElementsAre(1, 2, 0));
}

std::vector<std::pair<size_t, size_t>> places_of(const std::vector<AnswerPair>& pairs) {
  std::vector<std::pair<size_t, size_t>> places;
  for (const AnswerPair& pair : pairs) places.emplace_back(pair.first, pair.second);
  return places;
}

TEST(AnswerList, PairsAnswersToEqualPromptsInTheirOrder) {
  const RolloutRows first = {row_of({.prompt = "one"}), row_of({.prompt = "two"}), row_of({.prompt = "one"}), row_of({.prompt = "three"})};
  const RolloutRows second = {row_of({.prompt = "two"}), row_of({.prompt = "one", .response = "B"}), row_of({.prompt = "one"}),
                              row_of({.prompt = "one"})};
  const auto pairs = pair_answers(first, second);
  EXPECT_THAT(places_of(pairs), ElementsAre(std::pair(0, 1), std::pair(1, 0), std::pair(2, 2)));
  EXPECT_TRUE(pairs[0].differs);
  EXPECT_FALSE(pairs[1].differs);
  EXPECT_THAT(pair_answers(first, {}), IsEmpty());
}

TEST(AnswerList, AmongEqualTextsThoseOfEqualNumbersArePaired) {
  const auto numbered = [](int64_t id) {
    RolloutRow row = row_of({});
    Rollout rollout = *row.rollout;
    rollout.prompt_id = id;
    row.rollout = testing::shared(std::move(rollout));
    return row;
  };
  const RolloutRows first = {numbered(1), numbered(2), numbered(3)}, second = {numbered(3), numbered(2), numbered(9)};
  EXPECT_THAT(places_of(pair_answers(first, second)), ElementsAre(std::pair(0, 2), std::pair(1, 1), std::pair(2, 0)));
}

TEST(AnswerList, PairsThatDifferComeFirstAndThenTheGreatestRise) {
  const RolloutRows first = {row_of({.reward = 1, .prompt = "a"}), row_of({.reward = 1, .prompt = "b"}),
                             row_of({.reward = 1, .prompt = "c"}), row_of({.reward = 1, .prompt = "d"}), failed()};
  const RolloutRows second = {row_of({.reward = 1, .prompt = "a"}), row_of({.reward = 0, .prompt = "b"}),
                              row_of({.reward = 5, .prompt = "c"}), row_of({.reward = 2, .prompt = "d"}), row_of({.reward = 7})};
  const auto pairs = pair_answers(first, second);
  const auto chosen = [&](const AnswerChoice& choice) {
    std::vector<size_t> places;
    for (const AnswerPair& pair : choose_pairs(pairs, first, second, choice)) places.push_back(pair.first);
    return places;
  };
  EXPECT_THAT(chosen({}), ElementsAre(2, 3, 1, 4, 0));
  EXPECT_THAT(chosen({.worst = true}), ElementsAre(1, 3, 2, 4, 0));
  EXPECT_THAT(chosen({.limit = 2}), ElementsAre(2, 3));
  EXPECT_THAT(chosen({.key = AnswerKey::order}), ElementsAre(1, 2, 3, 4, 0));
}

TEST(AnswerList, CountsAStep) {
  const RolloutRows rows = {row_of({.reward = 1, .slot = 0, .length = 2, .kl = 0.5}),
                            row_of({.reward = 3, .slot = 0, .length = 6, .kl = 0.25}), failed()};
  const StepNumbers numbers = numbers_of(rows);
  EXPECT_EQ(numbers.num_answers, 3);
  EXPECT_EQ(numbers.num_prompts, 1);
  EXPECT_EQ(numbers.num_failed, 1);
  EXPECT_EQ(numbers.num_ended, 2);
  EXPECT_EQ(numbers.reward, 2);
  EXPECT_EQ(numbers.reward_std, 1);
  EXPECT_EQ(numbers.reward_min, 1);
  EXPECT_EQ(numbers.reward_max, 3);
  EXPECT_EQ(numbers.kl, 0.375);
  EXPECT_EQ(numbers.length, 3);
  const StepNumbers none = numbers_of({});
  EXPECT_FALSE(none.reward || none.reward_std || none.reward_min || none.reward_max || none.kl || none.length);
}

TEST(AnswerList, FindsAStepOrNamesTheNearest) {
  const std::vector<int64_t> steps = {2, 4, 10};
  EXPECT_EQ(choose_step(steps, "first", "run"), 2);
  EXPECT_EQ(choose_step(steps, "last", "run"), 10);
  EXPECT_EQ(choose_step(steps, "4", "run"), 4);
  const auto error_of = [&](std::string_view wanted) { return testing::error_of([&] { return choose_step(steps, wanted, "run"); }); };
  EXPECT_EQ(error_of("5"), "run: no answers of step 5; nearest: 4 and 10");
  EXPECT_EQ(error_of("0"), "run: no answers of step 0; nearest: 2");
  EXPECT_EQ(error_of("11"), "run: no answers of step 11; nearest: 10");
  for (const char* wanted : {"", "x", "4x", "newest", "99999999999999999999"})
    EXPECT_EQ(error_of(wanted), "expected a step number, first or last, found \"" + std::string(wanted) + "\"");
}

}  // namespace
}  // namespace kedge
