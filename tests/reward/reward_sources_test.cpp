#include "kedge/reward/reward_sources.h"

#include <gtest/gtest.h>

#include <csignal>

#include "kedge/core/error.h"
#include "kedge/net/model_server.h"
#include "kedge/reward/reward_service.h"
#include "kedge/text/chat/chat_template.h"

#include "tests/support/expect_error.h"
#include "tests/support/judge_folder.h"
#include "tests/support/reward_toys.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::JudgeFolder;

// A judge's folder on a server of its own, and what it gives for ids without any server.
struct Judge {
  Judge()
      : model(folder.load()),
        tokenizer(load_tokenizer(folder.path())),
        rows(folder.path(), model->config(), {model->config().max_positions, false, false}),
        scorer(*model, {}),
        server({}, {make_reward_service("reward_model", rows, scorer, {{4}, 0})}) {}

  [[nodiscard]] double offline(const std::string& text) const {
    const std::vector<TokenIds> one = {tokenizer->encode(text)};
    return scorer.score(one).item<double>();
  }

  JudgeFolder folder;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  ServedRows rows;
  RewardScorer scorer;
  ModelServer server;
};

std::shared_ptr<Rollout> rollout(const std::string& prompt, const std::string& response, TokenIds ids) {
  auto made = std::make_shared<Rollout>();
  made->prompt = prompt;
  made->response = response;
  made->ids = std::move(ids);
  return made;
}

RewardSet rewards_from(const std::string& source, const RewardSourceParts& parts) {
  return RewardSet(testing::load_rewards("reward: {sources: {judge: {" + source + "}}}"), model_sources(parts));
}

TEST(RewardSources, AJudgeWithAnotherTokenizerScoresTheText) {
  const Judge judge;
  // The policy's ids mean something else: were they sent, the rewards would be other ones.
  const Rollouts rollouts = {rollout("Tell me a story. ", "Once upon a time.", {9, 8, 7}), rollout("Hi", " there", {1, 2})};
  for (const std::string& source :
       {str("kind: server, url: 'http://127.0.0.1:", judge.server.port(), "'"), "kind: model, folder: " + judge.folder.path().string()}) {
    RewardSet set = rewards_from(source, {.tokenizer_fingerprint = "another"});
    const auto rewards = set.submit(rollouts).get();
    EXPECT_EQ(rewards.at(0).value, judge.offline("Tell me a story. Once upon a time.")) << source;
    EXPECT_EQ(rewards.at(1).value, judge.offline("Hi there")) << source;
  }
}

TEST(RewardSources, AJudgeWithTheSameTokenizerScoresTheIds) {
  const Judge judge;
  const TokenIds ids = judge.tokenizer->encode("Once upon a time.");
  RewardSet set = rewards_from(str("kind: server, url: 'http://127.0.0.1:", judge.server.port(), "'"),
                               {.tokenizer_fingerprint = judge.tokenizer->fingerprint()});
  // The text is wrong on purpose: only the ids may count.
  EXPECT_EQ(set.submit({rollout("not", " this", ids)}).get().at(0).value, judge.offline("Once upon a time."));
}

TEST(RewardSources, AJudgeWithAnotherTemplateRendersTheConversationItself) {
  const Judge judge;
  auto chat = rollout("<|user|>hi<|assistant|>", "hello", {1, 2, 3});
  chat->row = std::make_shared<Json>(Json::parse(R"({"messages": [{"role": "user", "content": "hi"}]})"));
  RewardSet set = rewards_from(str("kind: server, url: 'http://127.0.0.1:", judge.server.port(), "'"),
                               {.tokenizer_fingerprint = judge.tokenizer->fingerprint(), .chat_template_fingerprint = "another"});
  EXPECT_EQ(set.submit({chat}).get().at(0).value, judge.offline("user: hi\nassistant: hello\n"));
}

TEST(RewardSources, AddressesAndFoldersAreHeldAgainstTheirKeys) {
  EXPECT_EQ(error_of<UsageError>([] { (void)rewards_from("kind: server, url: 'http://a:1/x'", {}); }),
            "reward.sources.judge.url: expected only the server's address, such as http://host:port, found http://a:1/x");
  EXPECT_EQ(error_of<UsageError>([] { (void)rewards_from("kind: model, folder: /no/such", {}); }).substr(0, 38),
            "reward.sources.judge.folder: /no/such:");
}

TEST(RewardSources, SeveralServersShareTheRowsOfACall) {
  const Judge one, other;
  RewardSet set =
      rewards_from(str("kind: server, url: ['http://127.0.0.1:", one.server.port(), "', 'http://127.0.0.1:", other.server.port(), "']"),
                   {.tokenizer_fingerprint = "another"});
  Rollouts rollouts;
  for (const char* response : {"one", "two", "and a third that is longer", "", "five"})
    rollouts.push_back(rollout("Count: ", response, {1, 2}));
  const auto rewards = set.submit(rollouts).get();
  for (size_t i = 0; i < rollouts.size(); ++i) EXPECT_EQ(rewards.at(i).value, one.offline("Count: " + rollouts[i]->response)) << i;
}

TEST(RewardSources, OnlyServersMayBeSeveral) {
  EXPECT_EQ(error_of<UsageError>([] { (void)rewards_from("kind: http, url: ['http://a:1', 'http://b:1']", {}); }),
            "reward.sources.judge.url: a list of addresses is for kind server; expected one address");
  EXPECT_EQ(error_of<UsageError>([] { (void)rewards_from("kind: server, url: []", {}); }), "reward.sources.judge.url: an empty list");
  EXPECT_EQ(error_of<UsageError>([] { (void)rewards_from("kind: server, url: [7]", {}); }),
            "reward.sources.judge.url: expected an address, or a list of them, found [7]");
}

TEST(RewardSources, AServerThatStaysAwayIsNamed) {
  const int64_t port = HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
  RewardSet set = rewards_from(str("kind: server, wait_limit: 0.2, url: 'http://127.0.0.1:", port, "'"), {});
  const std::string error = error_of<Error>([&] { (void)set.submit({rollout("a", "b", {1})}).get(); });
  EXPECT_NE(error.find(str("the reward server 127.0.0.1:", port, " did not become ready")), std::string::npos) << error;
  EXPECT_NE(error.find("reward.sources.judge.url"), std::string::npos) << error;
}

TEST(RewardSources, ASignalEndsTheWaitForWhoIsAway) {
  const int64_t port = HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
  for (const char* kind : {"server", "http"}) {
    RewardSet set =
        rewards_from(str("kind: ", kind, ", url: 'http://127.0.0.1:", port, "'"), {.stop = [] { return std::optional<int>(SIGTERM); }});
    const std::string error = error_of<Interrupted>([&] { (void)set.submit({rollout("a", "b", {1})}).get(); });
    EXPECT_NE(error.find("SIGTERM received while the reward "), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace kedge
