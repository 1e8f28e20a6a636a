#include "kedge/reward/reward_protocol.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"

namespace kedge {
namespace {

constexpr RewardExchange kSingle{.id = 4};
constexpr RewardExchange kPair{.id = 4, .num_rows = 2, .batched = true};

TEST(RewardProtocol, ARequestHasAllOfTheRollout) {
  Rollout one = testing::rollout("42\n\u00E9", R"({"text": "Q", "answer": [1, null]})");
  one.sample = 3;
  EXPECT_EQ(reward_request(kSingle, {testing::shared(one)}),
            "{\"id\": 4, \"prompt\": \"Q\", \"response\": \"42\\n\u00E9\", \"ids\": [11, 12], \"finished\": true, \"sample\": 3, "
            "\"prompt_id\": 7, "
            "\"row\": {\"text\": \"Q\", \"answer\": [1, null]}}\n");
}

TEST(RewardProtocol, SeveralTravelAsAList) {
  const Json request = Json::parse(reward_request(kPair, {testing::shared(testing::rollout("a")), testing::shared(testing::rollout("b"))}));
  EXPECT_EQ(request.at("id", "").as_integer(""), 4);
  const auto& rollouts = request.at("rollouts", "").as_array("");
  ASSERT_EQ(rollouts.size(), 2U);
  EXPECT_EQ(rollouts[1].at("response", "").as_text(""), "b");
  EXPECT_TRUE(rollouts[1].at("row", "").is_null());
  EXPECT_EQ(rollouts[1].find("id"), nullptr);
}

RowReward single(std::string_view line) { return parse_reward_reply(line, kSingle).at(0); }

TEST(RewardProtocol, AReplyIsANumberOrAnObject) {
  EXPECT_EQ(single("0.5").value, 0.5);
  EXPECT_EQ(single("-3").value, -3);
  EXPECT_EQ(single(R"({"id": 4, "reward": 2})").value, 2);
  EXPECT_EQ(single(R"({"reward": 2, "error": null})").value, 2);
  const RowReward parted = single(R"({"id": 4, "reward": 2, "parts": {"a": 1.5, "b": 0.5}, "other": []})");
  EXPECT_EQ(parted.parts, (std::vector<std::pair<std::string, double>>{{"a", 1.5}, {"b", 0.5}}));
}

TEST(RewardProtocol, AFailedRowIsNotZero) {
  EXPECT_EQ(single(R"({"id": 4, "error": "no judge"})").error, "no judge");
  EXPECT_EQ(single(R"({"id": 4, "error": ""})").error, "the command returned \"error\" without a message");
  EXPECT_EQ(single("null").error, "the command gave no reward (null)");
  EXPECT_EQ(single(R"({"id": 4, "reward": null})").error, "the command gave no reward (null)");
}

TEST(RewardProtocol, ABatchHasOneForEachRow) {
  for (const char* line :
       {R"({"id": 4, "rewards": [1, null]})", "[1, null]", R"-([{"reward": 1}, {"error": "the command gave no reward (null)"}])-"}) {
    const auto rewards = parse_reward_reply(line, kPair);
    ASSERT_EQ(rewards.size(), 2U) << line;
    EXPECT_EQ(rewards[0].value, 1) << line;
    EXPECT_EQ(rewards[1].error, "the command gave no reward (null)") << line;
  }
  EXPECT_EQ(parse_reward_reply(R"({"id": 4, "error": "no"})", kPair).at(1).error, "no");
}

TEST(RewardProtocol, SaysWhatIsWrongWithAReply) {
  const auto error = [](const char* line, const RewardExchange& exchange) {
    return testing::error_of([&] { return parse_reward_reply(line, exchange); });
  };
  EXPECT_EQ(error(R"({"id": 3, "reward": 1})", kSingle), "reply: expected the id 4, found 3");
  EXPECT_EQ(error(R"({"id": 4})", kSingle), "reply: no \"reward\" field");
  EXPECT_EQ(error(R"({"reward": "good"})", kSingle), "reward: expected a number, found \"good\"");
  EXPECT_EQ(error("true", kSingle), "reply: expected a number, found true");
  EXPECT_EQ(error(R"({"reward": 1, "parts": {"a": null}})", kSingle), "parts.a: expected a number, found null");
  EXPECT_EQ(error("[1, 2, 3]", kPair), "reply: expected 2 rewards, found 3");
  EXPECT_EQ(error("1", kPair), "reply: expected an object, found 1");
  EXPECT_EQ(error("{}", kPair), "reply: no \"rewards\" field");
  for (const char* line : {"", "Loading...", "NaN", "1 2", "{\"reward\": 1"})
    EXPECT_EQ(error(line, kSingle).substr(0, 6), "reply:") << line;
}

}  // namespace
}  // namespace kedge
