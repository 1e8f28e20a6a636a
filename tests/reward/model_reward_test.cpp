#include "kedge/reward/model_reward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kedge/core/error.h"
#include "kedge/net/model_server.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

// Rewards a text by its length, ids by their sum, and a conversation by its number of messages times 100; what it was sent is kept.
ServedModel toy_judge(std::vector<std::string>& seen, std::vector<std::pair<std::string, std::string>> parameters = {}) {
  ServedModel model;
  model.signature = {.name = "reward_model",
                     .max_batch_size = 100,
                     .inputs = {{"sentences", WireType::bytes, {-1}, true},
                                {"tokens", WireType::int64, {-1}, true},
                                {"sequence_lengths", WireType::int64, {-1}, true},
                                {"messages", WireType::bytes, {-1}, true}},
                     .outputs = {{"rewards", WireType::fp32, {1}}},
                     .parameters = std::move(parameters)};
  model.run = [&seen](const std::vector<WireTensor>& inputs, const Json&) {
    std::vector<float> rewards;
    const int64_t rows = inputs[0].shape[0];
    seen.push_back(inputs[0].name + " " + std::to_string(rows));
    if (const WireTensor* texts = find_tensor(inputs, "sentences")) {
      for (const std::string& text : text_values(*texts)) {
        if (text == "bad") throw RequestError(400, "a bad text");
        rewards.push_back(text == "nan" ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(text.size()));
      }
    } else if (const WireTensor* messages = find_tensor(inputs, "messages")) {
      for (const std::string& text : text_values(*messages))
        rewards.push_back(100 * static_cast<float>(Json::parse(text).as_array("messages").size()));
    } else {
      const auto ids = int64_values(inputs[0]), lengths = int64_values(*find_tensor(inputs, "sequence_lengths"));
      for (int64_t row = 0; row < rows; ++row) {
        int64_t sum = 0;
        for (int64_t i = 0; i < lengths[static_cast<size_t>(row)]; ++i) sum += ids[static_cast<size_t>(row * inputs[0].shape[1] + i)];
        rewards.push_back(static_cast<float>(sum));
      }
    }
    return ServedResult{{fp32_tensor("rewards", {rows, 1}, rewards)}, Json(Json::Object{})};
  };
  return model;
}

std::shared_ptr<Rollout> asked_rollout(const std::string& prompt, const std::string& response, TokenIds ids = {1, 2, 3}) {
  auto made = std::make_shared<Rollout>();
  made->prompt = prompt;
  made->response = response;
  made->ids = std::move(ids);
  return made;
}

std::shared_ptr<Rollout> chat(const std::string& response) {
  auto made = asked_rollout("<user>hi", response);
  made->row = std::make_shared<Json>(Json::Object{{"messages", Json::Array{Json::Object{{"role", "user"}, {"content", "hi"}}}}});
  return made;
}

std::vector<double> values_of(const std::vector<RowReward>& rewards) {
  std::vector<double> values;
  for (const RowReward& reward : rewards) values.push_back(reward.failed() ? -1 : reward.value);
  return values;
}

TEST(ModelReward, IdsGoToAModelWithTheSameTokenizer) {
  std::vector<std::string> seen;
  ModelReward source(local_caller(toy_judge(seen, {{"tokenizer_fingerprint", "T"}}), "judge"), {.tokenizer_fingerprint = "T"});
  EXPECT_EQ(values_of(source.submit({asked_rollout("ab", "c", {1, 2, 3}), asked_rollout("a", "", {9})}).get()),
            (std::vector<double>{6, 9}));
  EXPECT_EQ(seen, (std::vector<std::string>{"tokens 2"}));
}

TEST(ModelReward, TextGoesToAModelWithAnother) {
  std::vector<std::string> seen;
  ModelReward source(local_caller(toy_judge(seen, {{"tokenizer_fingerprint", "U"}}), "judge"), {.tokenizer_fingerprint = "T"});
  EXPECT_EQ(values_of(source.submit({asked_rollout("ab", "cde")}).get()), (std::vector<double>{5}));
  EXPECT_EQ(seen, (std::vector<std::string>{"sentences 1"}));
}

// As NeMo-Aligner sends them: its servers say nothing of their tokenizer.
TEST(ModelReward, IdsGoToAModelThatDoesNotSayWhichTokenizerItHas) {
  std::vector<std::string> seen;
  ModelReward source(local_caller(toy_judge(seen), "judge"), {.tokenizer_fingerprint = "T"});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(values_of(source.submit({asked_rollout("ab", "c", {1, 2, 3}), chat("hello")}).get())[0], 6);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(seen, (std::vector<std::string>{"tokens 2"})) << "conversations too";
  EXPECT_THAT(warning, ::testing::HasSubstr("send=text would send text). Example:\n1 2 3\nabc"));
}

TEST(ModelReward, TextGoesToOneThatTakesNoIds) {
  std::vector<std::string> seen;
  ServedModel judge = toy_judge(seen);
  std::erase_if(judge.signature.inputs, [](const auto& input) { return input.name != "sentences"; });
  ModelReward source(local_caller(std::move(judge), "judge"), {.tokenizer_fingerprint = "T"});
  EXPECT_EQ(values_of(source.submit({asked_rollout("ab", "cde")}).get()), (std::vector<double>{5}));
  EXPECT_EQ(seen, (std::vector<std::string>{"sentences 1"}));
}

TEST(ModelReward, ConversationsGoAsMessagesToAModelWithAnotherTemplate) {
  std::vector<std::string> seen;
  const std::vector<std::pair<std::string, std::string>> parameters = {{"tokenizer_fingerprint", "T"}, {"chat_template_fingerprint", "C"}};
  ModelReward other(local_caller(toy_judge(seen, parameters), "judge"), {.tokenizer_fingerprint = "T", .chat_template_fingerprint = "D"});
  EXPECT_EQ(values_of(other.submit({chat("hello"), asked_rollout("a", "b", {4}), chat("")}).get()), (std::vector<double>{200, 4, 200}));
  EXPECT_EQ(seen, (std::vector<std::string>{"messages 2", "tokens 1"}));
  ModelReward same(local_caller(toy_judge(seen, parameters), "judge"), {.tokenizer_fingerprint = "T", .chat_template_fingerprint = "C"});
  EXPECT_EQ(values_of(same.submit({chat("hello")}).get()), (std::vector<double>{6}));
}

TEST(ModelReward, WhatIsSentCanBeSaid) {
  std::vector<std::string> seen;
  ModelReward source(local_caller(toy_judge(seen), "judge"), {.send = RewardInput::tokens, .pad_to_length = 8});
  EXPECT_EQ(values_of(source.submit({asked_rollout("ab", "c", {1, 2})}).get()), (std::vector<double>{3}));
}

TEST(ModelReward, ABadRowFailsAlone) {
  std::vector<std::string> seen;
  ModelReward source(local_caller(toy_judge(seen), "judge"), {.send = RewardInput::text});
  const auto rewards =
      source.submit({asked_rollout("a", "b"), asked_rollout("ba", "d"), asked_rollout("c", "de"), asked_rollout("na", "n")}).get();
  EXPECT_EQ(rewards.at(0).value, 2);
  EXPECT_EQ(rewards.at(1).error, "a bad text");
  EXPECT_EQ(rewards.at(2).value, 3);
  EXPECT_EQ(rewards.at(3).error, "judge gave nan");
}

TEST(ModelReward, AServerIsWaitedForWithoutHoldingUpWhoAsks) {
  const int64_t port = HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
  ModelClient client({.server = {.label = "reward server", .port = port}});
  ModelReward source(remote_caller(client, "reward_model"), {.tokenizer_fingerprint = "T"});
  std::vector<std::future<std::vector<RowReward>>> futures;
  for (int i = 0; i < 10; ++i) futures.push_back(source.submit({asked_rollout("ab", std::string(static_cast<size_t>(i), 'x'))}));
  std::vector<std::string> seen;
  ModelServer server({.port = port}, {toy_judge(seen, {{"tokenizer_fingerprint", "U"}})});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(values_of(futures[static_cast<size_t>(i)].get()), (std::vector<double>{2.0 + i}));
}

TEST(ModelReward, AModelThatGivesNoRewardsEndsTheRun) {
  std::vector<std::string> seen;
  ServedModel model = toy_judge(seen);
  model.run = [](const std::vector<WireTensor>&, const Json&) {
    return ServedResult{{fp32_tensor("rewards", {1, 2}, std::vector<float>{1, 2})}, Json(Json::Object{})};
  };
  ModelReward source(local_caller(model, "judge"), {.send = RewardInput::text});
  EXPECT_EQ(error_of<Error>([&] { (void)source.submit({asked_rollout("a", "b")}).get(); }),
            "judge: expected one FP32 reward for each of 1 rows, found FP32 [1,2]; a server with several attributes must merge them "
            "(model.regression.merge_attributes)");
}

TEST(ModelReward, ConversationsAreFoundInTheirLayouts) {
  auto made = asked_rollout("", "yes");
  made->row = std::make_shared<Json>(Json::parse(R"({"conversations": [{"from": "human", "value": "hi"}]})"));
  EXPECT_EQ(conversation_of(*made).dump_compact(), R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}])");
  made->row = std::make_shared<Json>(Json::parse(R"({"prompt": "hi"})"));
  EXPECT_TRUE(conversation_of(*made).is_null());
}

}  // namespace
}  // namespace kedge
