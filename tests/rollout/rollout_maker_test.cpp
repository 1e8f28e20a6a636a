#include "kedge/rollout/rollout_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "kedge/rollout/work_queue.h"

#include "tests/support/expect_error.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using testing::OnlineToy;

// Answers of a toy run, by slot and sample.
struct Making {
  OnlineToy toy;
  std::vector<std::string> end_strings = {};
  std::vector<int64_t> batch = {7, 2, 5};
  uint64_t purpose = 0, round = 0;
  RewardSource* rewards = &toy.rewards;
  std::function<void()> before_rewards = [] {};

  RolloutRows rows(WorkQueue* queue = nullptr, int64_t max_running = 256) {
    EngineConfig config;
    config.memory = "1MiB";
    config.scheduler.max_running = max_running;
    Engine engine(*toy.model, config);
    const ResponseText responses(*toy.tokenizer, end_strings);
    RolloutMaker maker(engine, *rewards, Group::single(), queue);
    RolloutRows rows = maker.generate({.prompts = *toy.prompts,
                                       .batch = batch,
                                       .num_samples = 3,
                                       .max_new = 8,
                                       .min_new = 1,
                                       .sampling = {},
                                       .responses = responses,
                                       .vocab_size = 259,
                                       .seed = 5,
                                       .purpose = purpose,
                                       .round = round});
    before_rewards();
    maker.take_rewards(rows);
    return rows;
  }
};

std::vector<TokenIds> ids_of(const RolloutRows& rows) {
  std::vector<TokenIds> ids;
  for (const RolloutRow& row : rows) ids.push_back(row.rollout->ids);
  return ids;
}

TEST(RolloutMaker, AnswersEveryPromptInTheOrderOfSlotsAndSamples) {
  Making making;
  const RolloutRows rows = making.rows();
  ASSERT_EQ(rows.size(), 9U);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Rollout& rollout = *rows[i].rollout;
    EXPECT_EQ(rows[i].slot, static_cast<int64_t>(i / 3));
    EXPECT_EQ(rollout.sample, static_cast<int64_t>(i % 3));
    EXPECT_EQ(rollout.prompt_id, making.batch[i / 3]);
    const PromptExample prompt = making.toy.prompts->get(rollout.prompt_id);
    EXPECT_EQ(rollout.prompt, prompt.text);
    EXPECT_EQ(TokenIds(rollout.ids.begin(), rollout.ids.begin() + rollout.prompt_length), prompt.ids);
    EXPECT_EQ(rollout.logprobs.size(), static_cast<size_t>(rollout.response_length()));
    EXPECT_LE(rollout.response_length(), 8);
    EXPECT_EQ(rollout.row->at("text", "row").as_text("text"), prompt.text) << "rewards see the row";
    EXPECT_EQ(rows[i].reward.value, testing::plain_share(rollout).value);
  }
}

TEST(RolloutMaker, WhatIsDrawnDependsOnPromptAndSampleAlone) {
  Making making;
  const std::vector<TokenIds> all = ids_of(making.rows());
  EXPECT_EQ(ids_of(making.rows(nullptr, 2)), all) << "two at a time";
  WorkQueue queue(Group::single(), {.port = 0, .piece = 2});
  EXPECT_EQ(ids_of(making.rows(&queue)), all) << "from a queue";
  making.batch = {5};
  EXPECT_EQ(ids_of(making.rows()), std::vector<TokenIds>(all.begin() + 6, all.end())) << "in another batch";
  making.round = 1;
  EXPECT_NE(ids_of(making.rows())[0], all[6]);
  making.round = 0;
  making.purpose = 1;
  EXPECT_NE(ids_of(making.rows())[0], all[6]);
}

TEST(RolloutMaker, AnAnswerThatEndsIsFinishedAndItsTextHasNoEnd) {
  Making making;
  for (int byte = 0; byte < 128; ++byte) making.end_strings.emplace_back(1, static_cast<char>(byte));  // ends half of all answers at once
  int finished = 0;
  for (const RolloutRow& row : making.rows()) {
    const Rollout& rollout = *row.rollout;
    const bool ends = rollout.ids.back() < 128 || rollout.ids.back() == 258;
    EXPECT_EQ(rollout.finished, ends);
    finished += ends ? 1 : 0;
    for (int64_t i = rollout.prompt_length; i + 1 < rollout.length(); ++i) EXPECT_GE(rollout.ids[static_cast<size_t>(i)], 128);
    EXPECT_TRUE(!ends || rollout.response_length() > 1 || rollout.response.empty());
  }
  EXPECT_GT(finished, 5);
}

// Each is a prompt of its own: it has its slot, and draws for itself.
TEST(RolloutMaker, EqualPromptsStayApart) {
  Making making;
  making.toy.prompts = making.toy.open_prompts("same.jsonl", "{\"text\": \"same\"}\n{\"text\": \"same\"}\n");
  making.batch = {1, 0};
  const RolloutRows rows = making.rows();
  ASSERT_EQ(rows.size(), 6U);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].slot, static_cast<int64_t>(i / 3));
    EXPECT_EQ(rows[i].rollout->prompt_id, making.batch[i / 3]);
    EXPECT_EQ(rows[i].rollout->prompt, "same");
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(rows[i].rollout->ids, rows[i + 3].rollout->ids);
}

// The end of a prompt is where it was, whatever ids it has.
TEST(RolloutMaker, APromptMayEndWithTheEndOfText) {
  Making making;
  DataConfig data;
  data.append_eod = true;
  making.toy.prompts = making.toy.open_prompts("ended.jsonl", "{\"text\": \"ab\"}\n", data);
  making.batch = {0};
  for (const RolloutRow& row : making.rows()) {
    const Rollout& rollout = *row.rollout;
    EXPECT_EQ(rollout.prompt_length, 3);
    EXPECT_EQ(rollout.ids[2], 258);
    EXPECT_EQ(rollout.finished, rollout.ids.back() == 258);
    EXPECT_TRUE(rollout.finished || rollout.response_length() == 8);
    EXPECT_GE(rollout.response_length(), 1);
  }
}

// Answers when told to: the last that was asked for comes first.
class LateReward final : public RewardSource {
 public:
  std::future<std::vector<RowReward>> submit(Rollouts rollouts) override {
    return open_.emplace_back(std::move(rollouts), std::promise<std::vector<RowReward>>()).second.get_future();
  }
  void answer() {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      std::vector<RowReward> rewards;
      for (const auto& rollout : open->first) rewards.push_back({.value = static_cast<double>(10 * rollout->prompt_id + rollout->sample)});
      open->second.set_value(std::move(rewards));
    }
  }
  [[nodiscard]] size_t num_calls() const { return open_.size(); }

 private:
  std::vector<std::pair<Rollouts, std::promise<std::vector<RowReward>>>> open_;
};

TEST(RolloutMaker, RewardsComeToTheirAnswersHoweverLate) {
  Making making;
  for (int byte = 0; byte < 128; ++byte) making.end_strings.emplace_back(1, static_cast<char>(byte));  // so that answers end one by one
  LateReward late;
  making.rewards = &late;
  std::thread answering;
  making.before_rewards = [&] { answering = std::thread([&] { late.answer(); }); };
  const RolloutRows rows = making.rows();
  answering.join();
  EXPECT_GT(late.num_calls(), 1U) << "as answers end";
  for (const RolloutRow& row : rows) EXPECT_EQ(row.reward.value, static_cast<double>(10 * row.rollout->prompt_id + row.rollout->sample));
}

TEST(RolloutMaker, SpoiledWeightsEndTheRunByAWord) {
  Making making;
  making.toy.model->parameters().flat().detach().fill_(std::numeric_limits<float>::quiet_NaN());
  try {
    static_cast<void>(making.rows());
    FAIL() << "rows from nothing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("prompt 7: no answer can be sampled"));
  }
}

}  // namespace
}  // namespace kedge
