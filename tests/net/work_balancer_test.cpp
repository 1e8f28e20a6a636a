#include "kedge/net/work_balancer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>

#include "kedge/net/http_client.h"

namespace kedge {
namespace {

using Indices = std::vector<int64_t>;

HttpResponse put(const WorkBalancer& balancer, const std::string& body, const std::string& method = "PUT",
                 const std::string& target = "/get_idx") {
  HttpConnection connection("127.0.0.1", balancer.port());
  return connection.send({method, target, {}, body});
}

TEST(WorkBalancer, SpeaksAsTheReferenceDoes) {
  WorkBalancer balancer({});
  balancer.fill({17, 3, 250, 96, 5});
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[17, 3, 250, 96]");
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[5]");
  EXPECT_EQ(put(balancer, R"({"batch_size": 4})").body, "[]");
  balancer.fill({1, 2});
  balancer.fill({7});  // what was left is dropped
  EXPECT_EQ(ask_for_work("127.0.0.1", balancer.port(), 9), (Indices{7}));
}

TEST(WorkBalancer, RefusesWhatItDoesNotKnow) {
  WorkBalancer balancer({});
  balancer.fill({1});
  EXPECT_EQ(put(balancer, "{}").status, 400);
  EXPECT_EQ(put(balancer, "four").status, 400);
  EXPECT_EQ(put(balancer, R"({"batch_size": 0})").status, 400);
  EXPECT_EQ(put(balancer, R"({"batch_size": 1})", "GET").status, 405);
  EXPECT_EQ(put(balancer, R"({"batch_size": 1})", "PUT", "/other").status, 404);
  EXPECT_EQ(ask_for_work("127.0.0.1", balancer.port(), 1), (Indices{1}));
}

TEST(WorkBalancer, EveryPieceIsHandedOutOnceToManyAskers) {
  WorkBalancer balancer({});
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
          const Indices some = ask_for_work("127.0.0.1", balancer.port(), 1 + asker % 5);
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
