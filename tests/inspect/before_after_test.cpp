#include "kedge/inspect/before_after.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_toy.h"

namespace kedge {
namespace {

using kedge::testing::RunToy;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "PROMPT: before -> after, step A -> step B"
std::vector<std::string> told(const BeforeAfter& all) {
  std::vector<std::string> texts;
  for (const AnswerPair& pair : all.pairs)
    texts.push_back(str(all.before.rows[pair.first].rollout->prompt, ": ", all.before.rows[pair.first].rollout->response, " -> ",
                        all.after.rows[pair.second].rollout->response, ", ", all.before.steps[pair.first], " -> ",
                        all.after.steps[pair.second]));
  return texts;
}

TEST(BeforeAfter, PromptsThatComeAgainAreFoundFromBothEnds) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_record(0, {{"a", "a0"}});
  toy.add_record(1, {{"b", "b1"}});
  toy.add_record(2, {{"c", "c2"}});
  toy.add_record(3, {{"a", "a3"}});
  toy.add_record(4, {{"b", "b4"}});
  const RunRecords records(toy.folder().string());
  EXPECT_THAT(told(find_before_after(records)), ElementsAre("a: a0 -> a3, 0 -> 3", "b: b1 -> b4, 1 -> 4"));
  EXPECT_THAT(told(find_before_after(records, {.num_prompts = 24, .num_files = 2})), IsEmpty());  // steps 0 and 4 alone
}

TEST(BeforeAfter, EnoughIsEnough) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  for (int64_t step = 0; step < 6; ++step) toy.add_record(step, {{"a", "x"}, {"b", "y"}});
  const BeforeAfter all = find_before_after(RunRecords(toy.folder().string()), {.num_prompts = 2, .num_files = 64});
  EXPECT_THAT(told(all), ElementsAre("a: x -> x, 0 -> 5", "b: y -> y, 0 -> 5"));
}

TEST(BeforeAfter, OneStepAloneHasNoLaterOne) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_record(0, {{"a", "x"}});
  EXPECT_THAT(told(find_before_after(RunRecords(toy.folder().string()))), IsEmpty());
}

TEST(BeforeAfter, GivenStepsOfTwoRuns) {
  const TempFolder folder;
  const RunToy first(folder / "first"), second(folder / "second");
  first.add_record(1, {{"a", "x"}, {"b", "y"}});
  second.add_record(7, {{"b", "z"}});
  EXPECT_THAT(told(compare_steps(RunRecords(first.folder().string()), 1, RunRecords(second.folder().string()), 7)),
              ElementsAre("b: y -> z, 1 -> 7"));
}

}  // namespace
}  // namespace kedge
