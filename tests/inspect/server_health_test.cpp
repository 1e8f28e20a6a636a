#include "kedge/inspect/server_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kedge/net/http_server.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using HealthState = ServerHealth::State;

std::vector<std::string> addresses(const std::string& settings, std::string_view algorithm) {
  std::vector<std::string> all;
  for (const RunServer& server : servers_of(Json::parse(settings), algorithm, "/there"))
    all.push_back(server.label + " " + server.address());
  return all;
}

TEST(ServersOf, ReinforceAsksTheServerThatItsSettingsName) {
  EXPECT_THAT(addresses(R"({"remote_rm": {"reward_model": {"ip": "rm01", "port": 5555}}, "reward": {"sources": {}}})", "reinforce"),
              ElementsAre("reward server rm01:5555"));
  EXPECT_THAT(addresses(R"({"remote_rm": {"reward_model": {"ip": ["a", "b"], "port": 5}}, "reward": {"sources": {}}})", "rs"),
              ElementsAre("reward server a:5", "reward server b:5"));
  EXPECT_THAT(addresses(R"({"remote_rm": {"reward_model": {"ip": "a", "port": [5, 6]}}, "reward": {"sources": {}}})", "rs"),
              ElementsAre("reward server a:5", "reward server a:6"));
  EXPECT_THAT(addresses(R"({"remote_rm": null, "reward": {"sources": {}}})", "rs"), ElementsAre("reward server localhost:5555"));
  EXPECT_THAT(addresses(R"({"remote_rm": null, "reward": {"sources": {"nice": {"kind": "regex"}}}})", "reinforce"), IsEmpty());
}

TEST(ServersOf, SourcesAndWatchesOfTheKindServer) {
  EXPECT_THAT(
      addresses(R"({"reward": {"sources": {"judge": {"kind": "server", "url": "http://a:7000"}, "bad": {"kind": "server", "url": "a"}},
                                       "watch": {"other": {"kind": "server", "url": "http://b:7001"}, "web": {"kind": "http", "url": "http://c"}}}})",
                "reinforce"),
      ElementsAre("reward server judge a:7000", "reward server other b:7001"));
}

TEST(ServersOf, PpoHasACriticAndPerhapsARewardModel) {
  const std::string servers = R"("critic": {"ip": "c", "port": 5556}, "reward_model": {"ip": "r", "port": 5557}, "token_file": "word.txt")";
  EXPECT_THAT(addresses("{\"remote_critic_rm\": {\"combine_rm_and_critic_server\": true, " + servers + "}}", "ppo"),
              ElementsAre("critic c:5556"));
  EXPECT_THAT(addresses("{\"remote_critic_rm\": {\"combine_rm_and_critic_server\": false, " + servers + "}}", "ppo"),
              ElementsAre("critic c:5556", "reward server r:5557"));
  EXPECT_THAT(addresses("{\"local_critic\": {\"max_steps\": 1}, \"remote_critic_rm\": {" + servers + "}}", "ppo"), IsEmpty());
  EXPECT_EQ(servers_of(Json::parse("{\"remote_critic_rm\": {" + servers + "}}"), "ppo", "/there")[0].token_file, Path("/there/word.txt"));
}

TEST(ServersOf, SettingsThatAreNoneNameNone) {
  EXPECT_THAT(addresses("null", "ppo"), IsEmpty());
  EXPECT_THAT(addresses(R"({"remote_critic_rm": {"critic": {"ip": "c", "port": "x"}}, "reward": [1]})", "ppo"), IsEmpty());
  EXPECT_THAT(addresses("{}", "sft"), IsEmpty());
}

class HealthTest : public ::testing::Test {
 protected:
  std::atomic<int> status_ = 200, num_calls_ = 0;
  HttpServer server_{HttpServerOptions{}, [this](const HttpRequest& request, const HttpReply& reply) {
                       num_calls_ += 1;
                       const bool is_known = find_header(request.headers, "Authorization") == "Bearer word";
                       const int status = status_ == 401 && is_known ? 200 : status_.load();
                       reply.send({status, {}, request.target == "/metrics" ? "kedge_queue_length 3\n" : ""});
                     }};
  RunServer asked_{.label = "critic", .host = "127.0.0.1", .port = server_.port()};
};

TEST_F(HealthTest, AServerIsReadyOrNot) {
  const ServerHealth ready = ask_server(asked_);
  EXPECT_EQ(ready.state, HealthState::ready);
  EXPECT_THAT(ready.numbers, ElementsAre(ServerNumber{"kedge_queue_length", "", 3}));
  status_ = 503;
  EXPECT_EQ(ask_server(asked_).state, HealthState::not_ready);
  status_ = 401;
  EXPECT_EQ(ask_server(asked_).state, HealthState::refuses);
}

TEST_F(HealthTest, TheTokenThatTheRunShowsIsShown) {
  const kedge::testing::TempFolder folder;
  status_ = 401;
  asked_.token_file = folder.file("word.txt", "word\n");
  EXPECT_EQ(ask_server(asked_).state, HealthState::ready);
  asked_.token_file = folder / "nowhere";
  EXPECT_EQ(ask_server(asked_).state, HealthState::away);  // said by name
  EXPECT_THAT(ask_server(asked_).text, HasSubstr("nowhere"));
}

TEST_F(HealthTest, AFileThatIsNoTokenIsSentToNobody) {
  const kedge::testing::TempFolder folder;
  asked_.token_file = folder.file("netrc", "machine a\nlogin b\n");
  EXPECT_THAT(ask_server(asked_).text, HasSubstr("is not a token"));
  EXPECT_EQ(num_calls_, 0);
}

TEST(WhyNotAsk, RunsOfOthersAndOtherMachinesAreLeftAlone) {
  const kedge::testing::TempFolder folder;
  const RunServer here{.label = "critic", .host = "127.0.0.1", .port = 5555}, there{.label = "critic", .host = "rm.example", .port = 5555};
  EXPECT_THAT(why_not_ask(here, folder.path(), true), HasSubstr("another user"));  // no run at all: nobody's
  (void)folder.file("config.yaml", "");
  (void)folder.file("run.json", "[]");
  EXPECT_EQ(why_not_ask(here, folder.path(), false), "");
  EXPECT_THAT(why_not_ask(there, folder.path(), false), HasSubstr("another machine"));
  EXPECT_EQ(why_not_ask(there, folder.path(), true), "");
}

TEST_F(HealthTest, OneThatIsNotThereIsAway) {
  server_.stop();
  const ServerHealth health = ask_server(asked_);
  EXPECT_EQ(health.state, HealthState::away);
  EXPECT_FALSE(health.text.empty());
}

TEST_F(HealthTest, TheDeskNeverWaitsAndAsksSeldom) {
  HealthPoller poller(std::chrono::hours(1));
  EXPECT_EQ(poller.look(asked_).state, HealthState::unknown);
  while (poller.look(asked_).state == HealthState::unknown) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(poller.look(asked_).state, HealthState::ready);
  EXPECT_EQ(num_calls_, 2);  // health and numbers, once
}

TEST(ServerHealth, StatesHaveNames) {
  EXPECT_EQ(name_of(HealthState::not_ready), "not ready");
  EXPECT_EQ(name_of(HealthState::away), "away");
}

}  // namespace
}  // namespace kedge
