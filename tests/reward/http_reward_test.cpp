#include "kedge/reward/http_reward.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "kedge/core/error.h"
#include "kedge/net/http_server.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

Rollouts some_rollouts() {
  Rollout a, b;
  a.prompt = "2+2=";
  a.response = "4";
  a.row = std::make_shared<Json>(Json::Object{{"prompt", "2+2="}, {"answer", "4"}});
  b.prompt = "Say hi. ";
  b.response = "hi";
  return {std::make_shared<Rollout>(a), std::make_shared<Rollout>(b)};
}

TEST(HttpReward, SendsTextsWithWhatTheirRowsSay) {
  EXPECT_EQ(http_reward_body(some_rollouts()),
            R"({"query":["2+2=4","Say hi. hi"],"prompts":["2+2=","Say hi. "],"responses":["4","hi"],"labels":["4",null],)"
            R"("rows":[{"prompt":"2+2=","answer":"4"},null]})");
}

TEST(HttpReward, ReadsTheUsualAnswers) {
  for (const char* body : {R"({"rewards": [1.5, -2]})", R"({"reward": [1.5, -2]})", "[1.5, -2]"}) {
    const auto rewards = read_http_rewards(body, 2, "here");
    EXPECT_EQ(rewards.at(0).value, 1.5) << body;
    EXPECT_EQ(rewards.at(1).value, -2) << body;
  }
  const auto holes = read_http_rewards(R"({"rewards": [null, 0]})", 2, "here");
  EXPECT_EQ(holes.at(0).error, "here: gave no reward for this row");
  EXPECT_FALSE(holes.at(1).failed());
  EXPECT_EQ(error_of<Error>([] { (void)read_http_rewards("[1]", 2, "here"); }), "here: 1 rewards for 2 rows");
  EXPECT_EQ(error_of<Error>([] { (void)read_http_rewards("{\"score\": 1}", 1, "here"); }),
            R"(here: expected {"rewards": [...]}, found {"score": 1})");
  EXPECT_THROW((void)read_http_rewards("not JSON", 1, "here"), Error);
  EXPECT_THROW((void)read_http_rewards(R"({"rewards": ["high"]})", 1, "here"), Error);
}

TEST(HttpReward, AsksAgainUntilThereIsAnAnswer) {
  std::atomic<int> calls = 0;
  HttpServer server({}, [&](const HttpRequest& request, const HttpReply& reply) {
    if (++calls < 3) return reply.send({502, {}, "later"});
    reply.send({200, {}, request.target == "/get_reward" ? R"({"rewards": [7, 8]})" : "[]"});
  });
  HttpReward source({.address = {"127.0.0.1", server.port(), "/get_reward"}, .first_pause = std::chrono::milliseconds(5)});
  const auto rewards = source.submit(some_rollouts()).get();
  EXPECT_EQ(rewards.at(0).value, 7);
  EXPECT_EQ(rewards.at(1).value, 8);
  EXPECT_EQ(calls, 3);
}

TEST(HttpReward, GivesUpByName) {
  int64_t port = 0;
  {
    HttpServer server({}, [](const HttpRequest&, const HttpReply& reply) { reply.send({404, {}, "no such thing"}); });
    port = server.port();
    HttpReward source({.address = {"127.0.0.1", port, "/x"}});
    EXPECT_EQ(error_of<Error>([&] { (void)source.submit(some_rollouts()).get(); }),
              str("the reward endpoint http://127.0.0.1:", port, "/x returned no rewards: HTTP 404: no such thing"));
  }
  HttpReward source({.address = {"127.0.0.1", port, "/x"}, .max_tries = 3, .first_pause = std::chrono::milliseconds(1)});
  EXPECT_EQ(error_of<Error>([&] { (void)source.submit(some_rollouts()).get(); }),
            str("the reward endpoint http://127.0.0.1:", port, "/x returned no rewards: 127.0.0.1:", port, ": Connection refused"));
}

// json.dumps() writes NaN, which is not JSON, and some endpoints refuse a call for one row that they dislike.
TEST(HttpReward, AReplyThatCannotBeUsedCostsOnlyTheRowsThatGiveIt) {
  for (const auto& [status, body] :
       {std::pair(200, "[NaN]"), std::pair(200, "[1, 2, 3]"), std::pair(200, R"(["high"])"), std::pair(400, "a bad row")}) {
    std::atomic<int> num_calls = 0;
    HttpServer server({}, [&, status = status, body = body](const HttpRequest& request, const HttpReply& reply) {
      ++num_calls;
      const bool has_bad = request.body.find("Say hi.") != std::string::npos;
      reply.send({has_bad ? status : 200, {}, has_bad ? body : "[7]"});
    });
    HttpReward source({.address = {"127.0.0.1", server.port(), "/x"}});
    const auto rewards = source.submit(some_rollouts()).get();
    EXPECT_EQ(rewards.at(0).value, 7) << body;
    EXPECT_TRUE(rewards.at(1).error.starts_with(str("the reward endpoint http://127.0.0.1:", server.port(), "/x returned no rewards: ")))
        << rewards.at(1).error;
    EXPECT_EQ(num_calls, 3) << "both rows, then each alone";
  }
}

// What Flask and FastAPI answer if the user's function raises.
TEST(HttpReward, ARowForWhichTheEndpointFailsIsTriedAgainAndHasNoReward) {
  std::atomic<int> num_calls = 0;
  HttpServer server({}, [&](const HttpRequest& request, const HttpReply& reply) {
    ++num_calls;
    const bool has_bad = request.body.find("Say hi.") != std::string::npos;
    reply.send({has_bad ? 500 : 200, {}, has_bad ? "raised" : "[7]"});
  });
  HttpReward source({.address = {"127.0.0.1", server.port(), "/x"}, .max_tries = 3, .first_pause = std::chrono::milliseconds(1)});
  const auto rewards = source.submit(some_rollouts()).get();
  EXPECT_EQ(rewards.at(0).value, 7);
  EXPECT_EQ(rewards.at(1).error, str("the reward endpoint http://127.0.0.1:", server.port(), "/x returned no rewards: HTTP 500: raised"));
  EXPECT_EQ(num_calls, 6) << "both rows three times, the good one once, the bad one twice";
}

TEST(HttpReward, ASignalEndsTheTriesWhereNobodyListensAndLongPauses) {
  std::atomic<int> calls = 0;
  int64_t port = 0;
  const StopQuestion stop = [] { return std::optional<int>(SIGTERM); };
  {
    HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) {
      if (++calls < 3) return reply.send({502, {}, "busy"});
      reply.send({200, {}, "[7, 8]"});
    });
    port = server.port();
    HttpReward source({.address = {"127.0.0.1", port, "/x"}, .first_pause = std::chrono::milliseconds(5), .stop = stop});
    EXPECT_EQ(source.submit(some_rollouts()).get().at(1).value, 8);
  }
  HttpReward source({.address = {"127.0.0.1", port, "/x"}, .first_pause = std::chrono::hours(1), .stop = stop});
  EXPECT_EQ(error_of<Interrupted>([&] { (void)source.submit(some_rollouts()).get(); }),
            str("SIGTERM received while the reward endpoint http://127.0.0.1:", port, "/x (127.0.0.1:", port,
                ": Connection refused) was unavailable"));
  HttpServer busy({}, [](const HttpRequest&, const HttpReply& reply) { reply.send({503, {}, "busy"}); });
  HttpReward waiting({.address = {"127.0.0.1", busy.port(), "/x"}, .first_pause = std::chrono::hours(1), .stop = stop});
  EXPECT_EQ(error_of<Interrupted>([&] { (void)waiting.submit(some_rollouts()).get(); }),
            str("SIGTERM received while the reward endpoint http://127.0.0.1:", busy.port(), "/x (HTTP 503: busy) was unavailable"));
}

TEST(HttpReward, AnEndpointThatIsBusyIsWaitedFor) {
  for (const int status : {408, 425, 429}) {
    std::atomic<int> num_calls = 0;
    HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) {
      const bool is_busy = num_calls++ < 2;
      reply.send({is_busy ? status : 200, {{"Retry-After", "0"}}, is_busy ? "later" : "[1, 2]"});
    });
    HttpReward reward({.address = {"127.0.0.1", server.port(), "/"}, .first_pause = std::chrono::milliseconds(1)});
    EXPECT_EQ(reward.submit(some_rollouts()).get().at(1).value, 2) << status;
    EXPECT_EQ(num_calls, 3) << status;
  }
}

TEST(HttpReward, ConnectionsThatWereClosedWhileIdleAreNoFailedTries) {
  std::mutex mutex;
  std::vector<HttpReply> waiting;
  const auto answer_ten_together = [&](const HttpRequest&, const HttpReply& reply) {  // so that each has its own connection
    const std::lock_guard lock(mutex);
    waiting.push_back(reply);
    if (waiting.size() < 10) return;
    for (const HttpReply& each : waiting) each.send({200, {}, "[1, 2]"});
    waiting.clear();
  };
  auto server = std::make_unique<HttpServer>(HttpServerOptions{}, answer_ten_together);
  const int64_t port = server->port();
  HttpReward reward({.address = {"127.0.0.1", port, "/"}, .max_tries = 1});
  for (int round = 0; round < 2; ++round) {
    std::vector<std::future<std::vector<RowReward>>> futures;
    for (int i = 0; i < 10; ++i) futures.push_back(reward.submit(some_rollouts()));
    for (auto& future : futures) EXPECT_EQ(future.get().at(1).value, 2);
    server.reset();
    server = std::make_unique<HttpServer>(HttpServerOptions{.port = port}, answer_ten_together);
  }
}

TEST(HttpReward, CallsUnderWayAreLimited) {
  std::mutex mutex;
  std::condition_variable came;
  std::vector<HttpReply> waiting;
  HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    waiting.push_back(reply);
    came.notify_all();
  });
  HttpReward reward({.address = {"127.0.0.1", server.port(), "/"}, .max_in_flight = 2});
  std::vector<std::future<std::vector<RowReward>>> futures;
  for (int i = 0; i < 20; ++i) futures.push_back(reward.submit(some_rollouts()));
  int num_answered = 0;
  while (num_answered < 20) {
    std::unique_lock lock(mutex);
    came.wait(lock, [&] { return !waiting.empty(); });
    EXPECT_LE(waiting.size(), 2U);
    const HttpReply reply = waiting.back();
    waiting.pop_back();
    lock.unlock();
    EXPECT_LE(server.num_connections(), 2);
    reply.send({200, {}, "[1, 2]"});
    ++num_answered;
  }
  for (auto& future : futures) EXPECT_EQ(future.get().at(0).value, 1);
}

}  // namespace
}  // namespace kedge
