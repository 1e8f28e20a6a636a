#pragma once
// Calls one model on several servers that serve the same: each call goes to the server with the least work, and to another one if it is
// lost. Independent of what the model does.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kedge/net/model_client.h"

namespace kedge {

struct PoolOptions {
  std::vector<WatchOptions> servers;     // their limits are for all of them together: how long none may be reachable
  std::string model = "reward_model";    // which changes nothing when it is called
  std::string label = "reward servers";  // for people
};

// Thread-safe. A server that is unreachable is left out until it is back, and one that has no room for half a minute.
class ServerPool {
 public:
  explicit ServerPool(PoolOptions options);  // does not wait for the network
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  // Waits for one of them to be ready. UsageError if two serve different models: a row's result must not depend on who computes it.
  [[nodiscard]] ModelSignature signature();
  // Waits as well. The future, which must be asked before the pool ends, sends the call to another server where one is lost, fails or has
  // no room; it throws what ModelClient's does, and names the server.
  [[nodiscard]] std::future<InferReply> infer(InferRequest request);

  // Ends all waits at once.
  void give_up();

  [[nodiscard]] size_t size() const { return servers_.size(); }
  [[nodiscard]] std::string name() const;  // "reward_model of the reward servers rm01:5555, rm02:5555"

 private:
  using Clock = std::chrono::steady_clock;

  struct Server {
    std::unique_ptr<ModelClient> client;
    std::unique_ptr<ServerWatch::Interest> interest;  // it is polled all the time
    int64_t num_rows = 0;                             // that wait for their results
    bool is_known = false;                            // its model was compared with the others'
    Clock::time_point full_until = {};                // others are preferred until then
  };
  struct Sent {
    size_t server = 0;
    int64_t rows = 0;
    std::future<InferReply> reply;
  };
  struct Wait {  // of one call, for any server
    Clock::time_point begin = Clock::now(), told = begin;
  };

  [[nodiscard]] std::optional<size_t> pick(std::optional<size_t> avoided);
  [[nodiscard]] size_t choose(std::optional<size_t> avoided);
  [[nodiscard]] size_t choose_known(std::optional<size_t> avoided);
  void compare(size_t server);
  void leave_out(size_t server, std::optional<Wait>& wait, const NoRoomError& error);
  void keep_waiting(Wait& wait, const std::string& what, const std::string& why) const;
  [[nodiscard]] Sent send(const InferRequest& request, std::optional<size_t> avoided);
  [[nodiscard]] InferReply finish(const InferRequest& request, Sent sent);
  [[nodiscard]] std::string problems();

  PoolOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  size_t last_ = 0;                          // the newest call's server
  std::optional<size_t> first_known_;        // the server whose model the others must have
  std::optional<ModelSignature> signature_;  // of that
  std::vector<Server> servers_;
};

}  // namespace kedge
