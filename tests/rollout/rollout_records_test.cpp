#include "kedge/rollout/rollout_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kedge/config/config.h"
#include "kedge/core/random.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

RolloutRows two_rows() {
  Rollout first{.prompt_id = 41,
                .sample = 3,
                .ids = {5, 0, 7, 2},
                .prompt_length = 1,
                .finished = true,
                .logprobs = {-0.1F, -0.0F, -1e-30F},
                .prompt = "one\n\"two\"",
                .response = "d\u00e9j\u00e0 \u2603"};
  Rollout second{.prompt_id = 42, .ids = {5}, .prompt_length = 1};
  return {{.rollout = testing::shared(std::move(first)),
           .slot = 6,
           .reward = {.value = 0.1 + 0.2, .parts = {{"tone", -1.0 / 3}, {"watch/long", 2}}},
           .logprobs = {-0.5F, -0.25F, -1},
           .reference = {-0.75F, -0.125F, -2},
           .entropy = 1.5,
           .kl_mean = 0.25,
           .kl_sum = 0.75,
           .reward_with_kl = 0.3,
           .baseline = 2,
           .advantage = -1.7,
           .trains = true},
          {.rollout = testing::shared(std::move(second)), .slot = 7, .reward = {.value = 9, .error = "no reply", .parts = {{"tone", 4}}}}};
}

TEST(RolloutRecords, GiveBackWhatAResumedRunNeeds) {
  const testing::TempFolder folder;
  RolloutRecords(folder / "rollouts", {}).save({.step = 12, .fingerprint = "abc"}, two_rows());
  RolloutRecords records(folder / "rollouts", {});
  const auto rows = records.read(12, "abc");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2U);
  const RolloutRow& first = rows->at(0);
  EXPECT_EQ(first.slot, 6);
  EXPECT_EQ(first.rollout->prompt_id, 41);
  EXPECT_EQ(first.rollout->sample, 3);
  EXPECT_THAT(first.rollout->ids, ElementsAre(5, 0, 7, 2));
  EXPECT_EQ(first.rollout->prompt_length, 1);
  EXPECT_TRUE(first.rollout->finished);
  EXPECT_EQ(bits_of(first.rollout->logprobs), bits_of({-0.1F, -0.0F, -1e-30F}));
  EXPECT_EQ(first.rollout->prompt, "one\n\"two\"");
  EXPECT_EQ(first.rollout->response, "d\u00e9j\u00e0 \u2603");
  EXPECT_EQ(first.rollout->row, nullptr);
  EXPECT_EQ(first.reward.value, 0.1 + 0.2);
  EXPECT_EQ(first.reward.error, "");
  EXPECT_EQ(first.reward.parts, (std::vector<std::pair<std::string, double>>{{"tone", -1.0 / 3}, {"watch/long", 2}}));
  const RolloutRow& second = rows->at(1);
  EXPECT_EQ(second.slot, 7);
  EXPECT_FALSE(second.rollout->finished);
  EXPECT_TRUE(second.rollout->logprobs.empty());
  EXPECT_EQ(second.reward.error, "no reply");
  EXPECT_EQ(second.reward.parts.size(), 1U);
}

// A run that goes on: what it may use of a record whose answer has the prompt "ab".
TEST(RolloutRecords, AreRecalledWhereTheSameWouldComeAgain) {
  const testing::TempFolder folder;
  const auto tokenizer = make_byte_tokenizer();
  const PromptDataset prompts(Rows::of_file(folder.file("prompts.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"cd\"}\n")),
                              encoder_of(*tokenizer), {}, 16);
  RolloutRecords records(folder / "rollouts", {});
  RolloutRow row{.rollout = testing::shared({.ids = {'a', 'b', 'x'}, .prompt_length = 2, .logprobs = {-1}}), .slot = 1};
  const auto keep = [&] { records.save({.step = 3, .fingerprint = "f"}, {row}); };
  const auto is_recalled = [&](const std::string& fingerprint, std::vector<int64_t> batch) {
    const RecordHeader header{.step = 3, .fingerprint = fingerprint};
    return records.load({.header = header, .prompts = prompts, .batch = batch, .draw = {}}).has_value();
  };
  keep();
  EXPECT_TRUE(is_recalled("f", {1, 0}));
  EXPECT_FALSE(is_recalled("g", {1, 0}));
  keep();
  EXPECT_FALSE(is_recalled("f", {0, 1})) << "the slot has another prompt now";
  keep();
  EXPECT_FALSE(is_recalled("f", {0})) << "there is no such slot";
  row.reward.error = "no reply";
  keep();
  EXPECT_FALSE(is_recalled("f", {1, 0})) << "who failed may be well again";
}

// Readers take every file for one of this run.
TEST(RolloutRecords, WhatWasRecordedAfterAStepThatGoesAnotherWayGoes) {
  const testing::TempFolder folder;
  const auto tokenizer = make_byte_tokenizer();
  const PromptDataset prompts(Rows::of_file(folder.file("prompts.jsonl", "{\"text\": \"ab\"}\n")), encoder_of(*tokenizer), {}, 16);
  RolloutRecords records(folder / "rollouts", {});
  const auto keep = [&](int64_t step, const std::string& prompt) {
    records.save(
        {.step = step, .fingerprint = "f"},
        {{.rollout = testing::shared({.ids = {static_cast<TokenId>(prompt[0]), static_cast<TokenId>(prompt[1])}, .prompt_length = 2})}});
    records.flush();
  };
  const std::vector<int64_t> batch = {0};
  const auto is_recalled = [&](int64_t step, const std::string& fingerprint) {
    const RecordHeader header{.step = step, .fingerprint = fingerprint};
    return records.load({.header = header, .prompts = prompts, .batch = batch, .draw = {}}).has_value();
  };
  for (const int64_t step : {1, 2, 4, 5, 6, 7, 10}) keep(step, step == 4 ? "cd" : "ab");
  folder.file("rollouts/step-5.jsonl", "damaged");
  folder.file("rollouts/notes.txt", "kept");
  EXPECT_TRUE(is_recalled(2, "f"));
  EXPECT_FALSE(is_recalled(3, "f")) << "there is none";
  EXPECT_FALSE(is_recalled(5, "f")) << "of unknown origin";
  EXPECT_THAT(recorded_steps(folder / "rollouts"), ElementsAre(1, 2, 4, 5, 6, 7, 10));
  EXPECT_FALSE(is_recalled(7, "g"));
  EXPECT_THAT(recorded_steps(folder / "rollouts"), ElementsAre(1, 2, 4, 5, 6));
  EXPECT_FALSE(is_recalled(4, "f")) << "its prompt is another now";
  EXPECT_THAT(recorded_steps(folder / "rollouts"), ElementsAre(1, 2));
  EXPECT_TRUE(is_file(folder / "rollouts/notes.txt"));
}

TEST(RolloutRecords, AreLinesOfJson) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, two_rows());
  records.flush();
  EXPECT_EQ(
      read_text(folder / "step-0.jsonl"),
      "{\"step\":0,\"fingerprint\":\"f\",\"rows\":2}\n"
      "{\"prompt_id\":41,\"slot\":6,\"sample\":3,\"prompt\":\"one\\n\\\"two\\\"\",\"response\":\"d\u00e9j\u00e0 \u2603\",\"ids\":[5,0,7,2],"
      "\"prompt_length\":1,\"finished\":true,\"engine_logprobs\":[-0.100000001,-0.0,-1e-30],\"logprobs\":[-0.5,-0.25,-1.0],"
      "\"reference\":[-0.75,-0.125,-2.0],\"reward\":0.30000000000000004,\"parts\":{\"tone\":-0.3333333333333333,\"watch/long\":2.0},"
      "\"error\":null,\"kl\":0.25,\"kl_sum\":0.75,\"entropy\":1.5,\"reward_with_kl\":0.3,\"baseline\":2.0,\"advantage\":-1.7,"
      "\"trains\":true}\n"
      "{\"prompt_id\":42,\"slot\":7,\"sample\":0,\"prompt\":\"\",\"response\":\"\",\"ids\":[5],\"prompt_length\":1,\"finished\":false,"
      "\"engine_logprobs\":[],\"logprobs\":[],\"reference\":[],\"reward\":null,\"parts\":{\"tone\":4.0},\"error\":\"no reply\",\"kl\":0.0,"
      "\"kl_sum\":0.0,\"entropy\":null,\"reward_with_kl\":0.0,\"baseline\":0.0,\"advantage\":0.0,\"trains\":false}\n");
}

TEST(RolloutRecords, HaveWhatACriticSaidWhereThereIsOne) {
  const testing::TempFolder folder;
  RolloutRows rows = two_rows();
  rows[0].values = {0.5F, 1};
  rows[0].returns = {2, -0.25F};
  rows[0].advantages = {1.5F, -1.25F};
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, rows);
  records.flush();
  EXPECT_THAT(read_text(folder / "step-0.jsonl"),
              HasSubstr("\"trains\":true,\"values\":[0.5,1.0],\"returns\":[2.0,-0.25],\"advantages\":[1.5,-1.25]}"));
  EXPECT_TRUE(records.read(0, "f"));
}

TEST(RolloutRecords, KeepEveryBitOfAFloat) {
  const testing::TempFolder folder;
  std::vector<float> values = {0.0F,
                               -0.0F,
                               1.0F,
                               16777216.0F,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min()};
  for (uint32_t i = 0; values.size() < 50000; ++i) {
    const auto value = std::bit_cast<float>(philox({i, 0, 0, 0}, {1, 2})[0]);  // of any size
    if (std::isfinite(value)) values.push_back(value);
  }
  Rollout rollout{.ids = TokenIds(values.size(), 1), .logprobs = values};
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, {{.rollout = testing::shared(std::move(rollout))}});
  const auto rows = records.read(0, "f");
  ASSERT_TRUE(rows);
  EXPECT_EQ(bits_of(rows->at(0).rollout->logprobs), bits_of(values));
}

TEST(RolloutRecords, AreOnlyGivenForTheirOwnStepAndFingerprint) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  records.save({.step = 3, .fingerprint = "abc"}, two_rows());
  EXPECT_TRUE(records.read(3, "abc"));
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(records.read(3, "abd"));
  EXPECT_FALSE(records.read(4, "abc"));
  std::filesystem::rename(records.path_of(3), records.path_of(4));
  EXPECT_FALSE(records.read(4, "abc"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  records.save({.step = 4, .fingerprint = "new"}, {});  // takes the place of the old one
  ASSERT_TRUE(records.read(4, "new"));
  EXPECT_TRUE(records.read(4, "new")->empty());
}

TEST(RolloutRecords, ADamagedFileIsNamedAndNotUsed) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, two_rows());
  records.flush();
  const std::string whole = read_text(folder / "step-0.jsonl");
  const auto said_of = [&](std::string_view content) {
    folder.file("step-0.jsonl", content);
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(records.read(0, "f")) << content;
    return ::testing::internal::GetCapturedStderr();
  };
  const auto replaced = [&](std::string_view old, std::string_view with) {
    std::string text = whole;
    return text.replace(text.find(old), old.size(), with);
  };
  const std::string warning = "the answers of step 0 cannot be reused: " + records.path_of(0).string() + ":";
  EXPECT_THAT(said_of(""), HasSubstr(warning));
  EXPECT_THAT(said_of(whole + "{}\n"), HasSubstr("has more than its 2 rows"));
  EXPECT_THAT(said_of(replaced("\"ids\":[5,", "\"ids\":[-5,")), HasSubstr(":2: no token has the id -5"));
  EXPECT_THAT(said_of(replaced("\"prompt_length\":1", "\"prompt_length\":5")), HasSubstr(":2: a prompt of 5 tokens among 4"));
  EXPECT_THAT(said_of(replaced("[-0.100000001,", "[")), HasSubstr(":2: \"engine_logprobs\" has 2 numbers for 3 tokens"));
  EXPECT_THAT(said_of(replaced("-0.100000001", "null")), HasSubstr(":2: expected a number, found null"));
  EXPECT_THAT(said_of(replaced("\"slot\":7,", "")), HasSubstr(":3: no \"slot\" field"));
}

TEST(RolloutRecords, AFileThatWasCutAnywhereIsNotUsed) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, two_rows());
  records.flush();
  const std::string whole = read_text(folder / "step-0.jsonl");
  ::testing::internal::CaptureStderr();
  int64_t num_cuts = 0;
  for (int64_t size = std::ssize(whole) - 1; size >= 0; size -= 11, ++num_cuts) {  // from the last end of a line on
    folder.file("step-0.jsonl", whole.substr(0, static_cast<size_t>(size)));
    EXPECT_FALSE(records.read(0, "f")) << size;
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), num_cuts);
}

TEST(RolloutRecords, NumbersThatJsonLacksMakeAFileThatIsOnlyToLookAt) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  Rollout rollout{.ids = {1}, .logprobs = {-std::numeric_limits<float>::infinity()}};
  records.save({.step = 0, .fingerprint = "f"}, {{.rollout = testing::shared(std::move(rollout))}});
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(records.read(0, "f"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("expected a number, found null"));
}

TEST(RolloutRecords, AFullDiskIsToldOnceAndTheRunGoesOn) {
  const testing::TempFolder folder;
  RolloutRecords records(folder.path(), {});
  records.save({.step = 0, .fingerprint = "f"}, two_rows());
  records.flush();
  const std::string before = read_text(folder / "step-0.jsonl");
  ::testing::internal::CaptureStderr();
  {
    const testing::FileSizeLimit limit(before.size() - 1);
    records.save({.step = 0, .fingerprint = "g"}, two_rows());
    records.save({.step = 1, .fingerprint = "g"}, two_rows());
    records.flush();
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("the answers of step 0 are not recorded: " + folder.path().string()));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(read_text(folder / "step-0.jsonl"), before);
  EXPECT_FALSE(is_file(folder / "step-1.jsonl"));
  records.save({.step = 2, .fingerprint = "g"}, two_rows());
  EXPECT_TRUE(records.read(2, "g"));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);  // no remains of the failed ones
}

TEST(RolloutRecords, AFolderThatCannotBeMadeDoesNotEndTheRun) {
  const testing::TempFolder folder;
  folder.file("rollouts", "a file");
  RolloutRecords records(folder / "rollouts", {});
  ::testing::internal::CaptureStderr();
  records.save({.step = 0, .fingerprint = "f"}, two_rows());
  records.flush();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the answers of step 0 are not recorded: "));
}

TEST(RolloutRecords, KeepAllSomeOrNone) {
  const auto kept = [](const std::string& keep) {
    const testing::TempFolder folder;
    RolloutRecords records(folder / "rollouts", {.keep = keep});
    for (int64_t step = 0; step < 7; ++step) records.save({.step = step, .fingerprint = "f"}, {});
    records.flush();
    std::vector<int64_t> steps;
    for (int64_t step = 0; step < 7; ++step)
      if (is_file(records.path_of(step))) steps.push_back(step);
    EXPECT_EQ(is_folder(folder / "rollouts"), keep != "none");
    return steps;
  };
  EXPECT_THAT(kept("all"), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(kept("every:3"), ElementsAre(0, 3, 6));
  EXPECT_THAT(kept("none"), ElementsAre());
}

TEST(RolloutRecords, WhatAKilledRunLeftHalfWrittenGoes) {
  const testing::TempFolder folder;
  folder.file(".step-3.jsonl.77.0.tmp", "half");
  folder.file("step-2.jsonl", "kept");
  folder.file("notes.tmp", "kept");
  const RolloutRecords records(folder.path(), {});
  EXPECT_FALSE(std::filesystem::exists(folder / ".step-3.jsonl.77.0.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-2.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(folder / "notes.tmp"));
}

TEST(RolloutRecords, RefuseOtherWordsForKeep) {
  const testing::TempFolder folder;
  for (const char* keep : {"", "some", "every", "every:", "every:0", "every:-2", "every:3x", "every: 3", "all "}) {
    EXPECT_THROW(static_cast<void>(recorded_every({.keep = keep})), UsageError);
    EXPECT_THAT(testing::error_of([&] { return RolloutRecords(folder.path(), {.keep = keep}).path_of(0); }),
                StartsWith("rollouts.keep: expected all, none or every:n with n of at least 1, found \"" + std::string(keep) + "\""));
  }
  RolloutsConfig config;
  EXPECT_EQ(recorded_every(config), 1);
  EXPECT_EQ(recorded_every({.keep = "none"}), 0);
  static_cast<void>(load_section(describe(config), ConfigText{"x.yaml", "keep: every:10"}, {}));
  EXPECT_EQ(recorded_every(config), 10);
}

}  // namespace
}  // namespace kedge
