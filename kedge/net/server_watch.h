#pragma once
// Tracks whether a server is reachable: polls its health as long as somebody waits for it, logs when it is lost and when it is
// back. Independent of models. Thread-safe.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kedge/core/stop.h"
#include "kedge/net/http_client.h"

namespace kedge {

struct WatchOptions {
  std::string label = "server";  // for people: "reward server"
  std::string host = "127.0.0.1";
  int64_t port = 0;
  std::string keys = {};  // the configuration keys of the address: "remote_rm.reward_model.ip and .port"
  std::optional<std::string> token = {};
  std::chrono::milliseconds period = std::chrono::seconds(2);    // between two polls
  std::chrono::milliseconds patience = std::chrono::seconds(6);  // for a reply, after which it counts as unreachable
  std::chrono::milliseconds start_limit = std::chrono::seconds(6000), return_limit = std::chrono::seconds(6000);
  std::chrono::milliseconds tell_every = std::chrono::seconds(30);  // while it is waited for
  StopQuestion stop = {};                                           // a signal ends the wait for an unreachable server
  std::string meanwhile = {};  // what happens while it is unreachable, for the warning; empty: it is waited for
};

class ServerWatch {
 public:
  // `on_gone` is called, on the watch's thread, whenever the server does not answer: calls under way to it are lost.
  ServerWatch(WatchOptions options, std::function<void()> on_gone);
  ~ServerWatch();
  ServerWatch(const ServerWatch&) = delete;
  ServerWatch& operator=(const ServerWatch&) = delete;

  // Somebody waits for the server as long as one of these lives.
  class Interest {
   public:
    explicit Interest(ServerWatch& watch) : watch_(watch) { watch_.add_interest(1); }
    ~Interest() { watch_.add_interest(-1); }
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;

   private:
    ServerWatch& watch_;
  };

  // Waits until the server is ready. An Error that names it, its address and its keys if it is not ready in time, and after stop(); a
  // UsageError if it requires another token. Interrupted if a signal was received while the server is unreachable.
  void wait_until_up();
  // Did it reply when it was last polled, and does no failed call cast doubt on that? Never waits. Polled as long as somebody is
  // interested.
  [[nodiscard]] bool is_up();
  [[nodiscard]] std::string problem();  // why it is not up, for people
  // UsageError if it requires another token.
  void check_accepted();
  // A call to it has failed: it is polled at once, over a new connection, and counts as unreachable until it replies.
  void suspect(const std::string& why);
  // Ends all waits.
  void stop();

  [[nodiscard]] const WatchOptions& options() const { return options_; }
  [[nodiscard]] std::string name() const;  // "reward server rm01:5555"

 private:
  using Clock = std::chrono::steady_clock;

  void add_interest(int64_t change);
  void run();
  struct Health {
    bool is_up = false, is_lost = false;  // neither: it replies, but accepts no calls
    bool wants_token = false;             // a different one from the token sent: waiting would not help
    std::string why = {};
  };
  [[nodiscard]] Health ask();
  void note(const Health& health);
  void refuse_wrong_token() const;  // under mutex_

  WatchOptions options_;
  std::function<void()> on_gone_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_interested_ = 0;
  bool is_up_ = false, was_up_ = false, is_away_ = false, is_told_ = false, asks_now_ = false, asks_anew_ = false, stopping_ = false,
       is_refused_ = false;
  std::string why_ = "not asked yet";
  Clock::time_point down_since_, last_told_;
  HttpConnection connection_;
  std::thread thread_;
};

}  // namespace kedge
