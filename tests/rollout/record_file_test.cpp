#include "kedge/rollout/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RolloutRow judged_row() {
  Rollout rollout{.prompt_id = 41,
                  .sample = 3,
                  .ids = {5, 0, 7},
                  .prompt_length = 1,
                  .finished = true,
                  .logprobs = {-0.5F, -1},
                  .prompt = "one\ntwo",
                  .response = "d\u00e9j\u00e0"};
  return {.rollout = testing::shared(std::move(rollout)),
          .slot = 6,
          .reward = {.value = 0.75, .parts = {{"tone", -1.5}}},
          .logprobs = {-0.25F, -2},
          .reference = {-0.75F, -0.125F},
          .entropy = 1.5,
          .kl_mean = 0.25,
          .kl_sum = 0.5,
          .reward_with_kl = 0.7,
          .baseline = 2,
          .advantage = -1.25,
          .values = {0.5F, 1},
          .advantages = {1.5F, -1.25F},
          .returns = {2, -0.25F},
          .trains = true};
}

RolloutRow failed_row() {
  return {.rollout = testing::shared({.prompt_id = 42, .ids = {5}, .prompt_length = 1}), .slot = 7, .reward = {.error = "no reply"}};
}

TEST(RecordFile, GivesBackEveryNumberToLookAt) {
  const std::string text = format_record({.step = 12, .fingerprint = "abc"}, {judged_row(), failed_row()});
  const RecordHeader header = parse_record_header(text, "f");
  EXPECT_EQ(header.step, 12);
  EXPECT_EQ(header.fingerprint, "abc");
  EXPECT_EQ(header.num_rows, 2);
  const RolloutRows rows = parse_record_rows(text, "f", RecordParts::all);
  ASSERT_EQ(rows.size(), 2U);
  const RolloutRow& first = rows[0];
  EXPECT_EQ(first.rollout->response, "d\u00e9j\u00e0");
  EXPECT_THAT(first.logprobs, ElementsAre(-0.25F, -2));
  EXPECT_THAT(first.reference, ElementsAre(-0.75F, -0.125F));
  EXPECT_EQ(first.entropy, 1.5);
  EXPECT_EQ(first.kl_mean, 0.25);
  EXPECT_EQ(first.kl_sum, 0.5);
  EXPECT_EQ(first.reward_with_kl, 0.7);
  EXPECT_EQ(first.baseline, 2);
  EXPECT_EQ(first.advantage, -1.25);
  EXPECT_THAT(first.values, ElementsAre(0.5F, 1));
  EXPECT_THAT(first.advantages, ElementsAre(1.5F, -1.25F));
  EXPECT_THAT(first.returns, ElementsAre(2, -0.25F));
  EXPECT_TRUE(first.trains);
  EXPECT_EQ(rows[1].reward.error, "no reply");
  EXPECT_FALSE(rows[1].entropy);
  EXPECT_THAT(rows[1].values, IsEmpty());
  EXPECT_FALSE(rows[1].trains);
  EXPECT_EQ(format_record({.step = 12, .fingerprint = "abc"}, rows), text);
}

TEST(RecordFile, TheFirstLineTellsOfWeightsAndUpdates) {
  const RecordHeader header{.step = 4,
                            .fingerprint = "abc",
                            .weights_before = "00ff",
                            .weights_after = "ff00",
                            .updates = {{{"loss", 0.1 + 0.2}, {"lr", 1e-3}}, {{"loss", std::nan("")}}}};
  const std::string text = format_record(header, {});
  EXPECT_EQ(text,
            "{\"step\":4,\"fingerprint\":\"abc\",\"rows\":0,\"weights_before\":\"00ff\",\"weights_after\":\"ff00\","
            "\"updates\":[{\"loss\":0.30000000000000004,\"lr\":0.001},{\"loss\":null}]}\n");
  const RecordHeader read = parse_record_header(text, "f");
  EXPECT_EQ(read.weights_before, "00ff");
  EXPECT_EQ(read.weights_after, "ff00");
  ASSERT_EQ(read.updates.size(), 2U);
  EXPECT_EQ(read.updates[0].find("loss"), 0.1 + 0.2);
  EXPECT_EQ(read.updates[0].find("lr"), 1e-3);
  EXPECT_TRUE(std::isnan(read.updates[1].find("loss").value()));
  EXPECT_EQ(format_record(read, {}), text);
}

TEST(RecordFile, OlderOnesWithoutWeightsAndUpdatesAreRead) {
  const RecordHeader header = parse_record_header("{\"step\":4,\"fingerprint\":\"abc\",\"rows\":0}\n", "f");
  EXPECT_EQ(header.weights_before, "");
  EXPECT_EQ(header.weights_after, "");
  EXPECT_THAT(header.updates, IsEmpty());
}

TEST(RecordFile, AnswersHaveNothingThatIsComputedAgain) {
  const RolloutRows rows = parse_record_rows(format_record({.step = 0, .fingerprint = "f"}, {judged_row()}), "f", RecordParts::answers);
  EXPECT_THAT(rows.at(0).rollout->logprobs, ElementsAre(-0.5F, -1));
  EXPECT_EQ(rows.at(0).reward.value, 0.75);
  EXPECT_THAT(rows.at(0).logprobs, IsEmpty());
  EXPECT_FALSE(rows.at(0).entropy);
  EXPECT_EQ(rows.at(0).advantage, 0);
  EXPECT_THAT(rows.at(0).values, IsEmpty());
}

TEST(RecordFile, NumbersThatJsonLacksAreNanToLookAtAndAnErrorElsewhere) {
  RolloutRow row = judged_row();
  row.reward.value = std::numeric_limits<double>::infinity();
  row.logprobs[0] = -std::numeric_limits<float>::infinity();
  row.advantage = std::numeric_limits<double>::quiet_NaN();
  const std::string text = format_record({.step = 0, .fingerprint = "f"}, {row});
  const RolloutRows rows = parse_record_rows(text, "f", RecordParts::all);
  EXPECT_TRUE(std::isnan(rows.at(0).reward.value));
  EXPECT_TRUE(std::isnan(rows.at(0).logprobs[0]));
  EXPECT_TRUE(std::isnan(rows.at(0).advantage));
  EXPECT_EQ(testing::error_of([&] { return parse_record_rows(text, "f", RecordParts::answers); }), "f:2: expected a number, found null");
}

TEST(RecordFile, ErrorsNameFileAndLine) {
  const std::string whole = format_record({.step = 0, .fingerprint = "f"}, {judged_row(), judged_row()});
  const auto error_with = [&](std::string_view old, std::string_view with) {
    std::string text = whole;
    text.replace(text.rfind(old), old.size(), with);
    return testing::error_of([&] { return parse_record_rows(text, "runs/a.jsonl", RecordParts::all); });
  };
  EXPECT_EQ(error_with("\"kl\":0.25,", ""), "runs/a.jsonl:3: no \"kl\" field");
  EXPECT_EQ(error_with("\"reference\":[-0.75,", "\"reference\":["), "runs/a.jsonl:3: \"reference\" has 1 numbers for 2 tokens");
  EXPECT_EQ(error_with("\"returns\":[2.0,", "\"returns\":[2.0,2.0,"), "runs/a.jsonl:3: \"returns\" has 3 numbers for 2 tokens");
  EXPECT_EQ(error_with("\"error\":null", "\"error\":\"\""), "runs/a.jsonl:3: \"error\" is empty; without one it is null");
  EXPECT_THAT(error_with("\"trains\":true", "\"trains\":tru"), ::testing::StartsWith("runs/a.jsonl:3:"));
  EXPECT_EQ(error_with("}\n", "}"), "runs/a.jsonl:3: the file ends before this line does");
  EXPECT_EQ(error_with("\"rows\":2", "\"rows\":1"), "runs/a.jsonl:3: has more than its 1 rows");
  EXPECT_EQ(error_with("\"rows\":2", "\"rows\":3"), "runs/a.jsonl:4: the file ends before this line does");
  EXPECT_EQ(error_with("\"step\":0,", ""), "runs/a.jsonl:1: no \"step\" field");
  EXPECT_EQ(error_with("\"rows\":2", "\"rows\":2,\"updates\":[{\"loss\":\"low\"}]"), "runs/a.jsonl:1: expected a number, found \"low\"");
  EXPECT_EQ(error_with("\"rows\":2", "\"rows\":2,\"weights_after\":7"), "runs/a.jsonl:1: expected a string, found 7");
}

TEST(RecordFile, FindsTheStepsOfAFolder) {
  const testing::TempFolder folder;
  for (const char* name : {"step-10.jsonl", "step-9.jsonl", "step-0.jsonl", "step-x.jsonl", "step-.jsonl", "step--1.jsonl", "step-07.jsonl",
                           "step-3.jsonl.tmp", ".step-4.jsonl.1.0.tmp", "notes"})
    folder.file(name, "");
  EXPECT_THAT(recorded_steps(folder.path()), ElementsAre(0, 9, 10));
  EXPECT_EQ(record_path(folder.path(), 9), folder / "step-9.jsonl");
  EXPECT_THAT(recorded_steps(folder / "none"), IsEmpty());
  EXPECT_EQ(remove_records(folder.path(), 1, 10), 1);
  EXPECT_THAT(recorded_steps(folder.path()), ElementsAre(0, 10));
  EXPECT_EQ(remove_records(folder / "none", 0, 10), 0);
}

}  // namespace
}  // namespace kedge
