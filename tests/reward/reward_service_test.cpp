#include "kedge/reward/reward_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/judge_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::JudgeFolder;

struct Service {
  explicit Service(int64_t num_labels = 1, int64_t max_tokens = 200)
      : folder(num_labels),
        model(folder.load()),
        rows(folder.path(), model->config(), {}),
        scorer(*model, {.max_tokens = max_tokens}),
        served(make_reward_service("reward_model", rows, scorer, {{4}, 2000})) {}

  std::vector<float> rewards(const std::vector<WireTensor>& inputs) const {
    InferRequest request;
    request.inputs = inputs;
    check_inputs(served.signature, request);
    served.check(request);
    const ServedResult result = served.run(inputs, {});
    EXPECT_EQ(result.outputs.size(), 1U);
    EXPECT_EQ(result.outputs[0].name, "rewards");
    const auto values = fp32_values(result.outputs[0]);
    return {values.begin(), values.end()};
  }

  JudgeFolder folder;
  std::unique_ptr<Model> model;
  ServedRows rows;
  RewardScorer scorer;
  ServedModel served;
};

std::vector<WireTensor> token_rows(const std::vector<TokenIds>& rows, int64_t width) {
  std::vector<int64_t> ids(rows.size() * static_cast<size_t>(width), 0), lengths;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::copy(rows[row].begin(), rows[row].end(), ids.begin() + static_cast<int64_t>(row) * width);
    lengths.push_back(static_cast<int64_t>(rows[row].size()));
  }
  const auto count = static_cast<int64_t>(rows.size());
  return {int64_tensor("tokens", {count, width}, ids), int64_tensor("sequence_lengths", {count, 1}, lengths)};
}

TEST(RewardService, TellsWhatItTakesAndGives) {
  const Service service;
  const ModelSignature& signature = service.served.signature;
  EXPECT_EQ(signature.name, "reward_model");
  EXPECT_EQ(signature.max_batch_size, 9999999);
  std::vector<std::string> names;
  for (const TensorSpec& input : signature.inputs) {
    names.push_back(input.name);
    EXPECT_TRUE(input.optional);
  }
  EXPECT_THAT(names, ElementsAre("sentences", "messages", "tokens", "sequence_lengths"));
  EXPECT_THAT(signature.outputs[0].dims, ElementsAre(1));
  EXPECT_THAT(signature.preferred_batch_sizes, ElementsAre(4));
  EXPECT_FALSE(service.served.is_kept);
  EXPECT_THAT(Service(3).served.signature.outputs[0].dims, ElementsAre(3));
}

// Checklist 5: of any number of rows each gets its own reward, equal to that of the row alone.
TEST(RewardService, AnyNumberOfRows) {
  const Service service;
  for (const size_t count : {1, 3, 4, 5, 11}) {
    const auto rows = testing::rows_of({3, 9, 1, 5, 2, 7, 7, 1, 20, 4, 6}, 256);
    const std::vector<TokenIds> some(rows.begin(), rows.begin() + static_cast<int64_t>(count));
    const std::vector<float> rewards = service.rewards(token_rows(some, 24));
    ASSERT_EQ(rewards.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(rewards[i], service.rewards(token_rows({some[i]}, 32))[0]) << i;
  }
}

TEST(RewardService, TextIdsAndMessagesOfTheSameRowGetTheSameReward) {
  const Service service;
  const std::string text = "user: hi\n";
  const float wanted = service.rewards(token_rows({TokenIds(text.begin(), text.end())}, 30))[0];
  EXPECT_EQ(service.rewards({text_tensor("sentences", {1, 1}, std::vector{text})})[0], wanted);
  EXPECT_EQ(service.rewards({text_tensor("messages", {1, 1}, std::vector<std::string>{R"([{"role": "user", "content": "hi"}])"})})[0],
            wanted);
}

TEST(RewardService, SeveralAttributesAreARowOfTheReply) {
  const Service service(3);
  EXPECT_EQ(service.rewards(token_rows({{1, 2}, {3}}, 2)).size(), 6U);
}

TEST(RewardService, MistakesShowBeforeAnythingRuns) {
  const Service service;
  InferRequest request;
  request.inputs = token_rows({{1, 2, 999}}, 3);
  EXPECT_EQ(error_of<RequestError>([&] { return service.served.check(request), 0; }),
            "tokens: row 0: id 999 is outside the model's vocabulary of 259");
}

}  // namespace
}  // namespace kedge
