#include "kedge/net/work_balancer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>

#include "kedge/net/http_client.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using Indices = std::vector<int64_t>;

HttpResponse put(const WorkBalancer& balancer, const std::string& body, const std::string& method = "PUT",
                 const std::string& target = "/get_idx") {
  HttpConnection connection("127.0.0.1", balancer.port());
  return connection.send({method, target, {{"Authorization", "Bearer word"}}, body});
}

TEST(WorkBalancer, SpeaksAsTheReferenceDoes) {
  WorkBalancer balancer({}, "word");
  balancer.fill({17, 3, 250, 96, 5});
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[17, 3, 250, 96]");
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[5]");
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[]");
  balancer.fill({1, 2});
  balancer.fill({7});  // what was left is dropped
  EXPECT_EQ(ask_for_work({"127.0.0.1", balancer.port(), "word"}, 9), (Indices{7}));
}

TEST(WorkBalancer, RefusesWhatItDoesNotKnow) {
  WorkBalancer balancer({}, "word");
  balancer.fill({1});
  EXPECT_EQ(put(balancer, "{}").status, 400);
  EXPECT_EQ(put(balancer, "four").status, 400);
  EXPECT_EQ(put(balancer, R"({"batch_size": 0})").status, 400);
  EXPECT_EQ(put(balancer, R"({"batch_size": 1})", "GET").status, 405);
  EXPECT_EQ(put(balancer, R"({"batch_size": 1})", "PUT", "/other").status, 404);
  EXPECT_EQ(ask_for_work({"127.0.0.1", balancer.port(), "word"}, 1), (Indices{1}));
}

TEST(WorkBalancer, AStrangerTakesNothing) {
  WorkBalancer balancer({}, "word");
  balancer.fill({1, 2});
  EXPECT_EQ(testing::error_of<Error>([&] {
              (void)ask_for_work({"127.0.0.1", balancer.port(), "wrong"}, 2);
            }),
            str("the work balancer 127.0.0.1:", balancer.port(), ": HTTP 401: {\"error\":\"unauthorized\"}"));
  HttpConnection connection("127.0.0.1", balancer.port());
  EXPECT_EQ(connection.send({"PUT", "/get_idx", {}, R"({"batch_size": 9999})"}).status, 401);
  EXPECT_EQ(put(balancer, std::string(4097, ' ')).status, 413);
  EXPECT_EQ(ask_for_work({"127.0.0.1", balancer.port(), "word"}, 9), (Indices{1, 2}));
}

TEST(WorkBalancer, EveryPieceIsHandedOutOnceToManyAskers) {
  WorkBalancer balancer({}, "word");
  for (int round = 0; round < 3; ++round) {
    Indices all(2000);
    std::iota(all.begin(), all.end(), 0);
    balancer.fill(all);
    std::mutex mutex;
    Indices got;
    std::vector<std::thread> askers;
    for (int asker = 0; asker < 64; ++asker)
      askers.emplace_back([&, asker] {
        while (true) {
          const Indices some = ask_for_work({"127.0.0.1", balancer.port(), "word"}, 1 + asker % 5);
          if (some.empty()) return;
          const std::lock_guard lock(mutex);
          got.insert(got.end(), some.begin(), some.end());
        }
      });
    for (std::thread& asker : askers) asker.join();
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, all);
  }
}

}  // namespace
}  // namespace kedge
