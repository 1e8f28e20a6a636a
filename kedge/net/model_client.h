#pragma once
// Calls models on one server, kedge's or any with the KServe protocol: futures, a pool of connections, calls repeated where
// that is safe, and waiting for a server that is unreachable. Independent of what the models do.
#include <chrono>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kedge/net/kserve.h"
#include "kedge/net/server_watch.h"
#include "kedge/net/signature.h"

namespace kedge {

// The server rejected the call.
class RemoteError : public Error {
 public:
  RemoteError(int status, const std::string& text) : Error(text), status_(status) {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

// The server answered a call with HTTP 503 as long as it is waited for; it has executed nothing.
class NoRoomError : public Error {
 public:
  using Error::Error;
};

struct ClientOptions {
  WatchOptions server;
  int64_t max_in_flight = 128;                                 // and as many more may wait; then the sender does
  int64_t max_resends = 8;                                     // of one call whose connection was lost while the server was up
  std::optional<std::chrono::milliseconds> answer_limit = {};  // for one call; none: for ever, since training may take hours
};

// Is a call executed at most once if it is sent twice?
enum class Resend {
  safe,    // it changes nothing
  by_key,  // kedge servers know its request_key; others would execute it again
};

// Thread-safe.
class ModelClient {
 public:
  explicit ModelClient(ClientOptions options);  // does not touch the network
  ~ModelClient();                               // pending calls fail
  ModelClient(const ModelClient&) = delete;
  ModelClient& operator=(const ModelClient&) = delete;

  // Waits for the server to be ready, then requests the model's signature. An Error, or a RemoteError if there is no such model;
  // that takes the full start_limit with a foreign server, which does not distinguish a missing model from one that is loading.
  [[nodiscard]] ModelSignature signature(const std::string& model);
  // Is it a kedge server? Waits as well.
  [[nodiscard]] bool is_kedge();

  // All outputs are requested. Blocks only if too many calls already wait. The future throws RemoteError if the server rejected the call,
  // Error if it was unreachable or without room too long or a call that must not be repeated was lost, Interrupted if a signal was
  // received meanwhile.
  [[nodiscard]] std::future<InferReply> infer(const std::string& model, InferRequest request, Resend resend = Resend::safe);

  // Ends all waits at once. Later calls are not made, and fail when the client ends.
  void give_up();

  [[nodiscard]] std::string server_name() const { return watch_.name(); }
  [[nodiscard]] ServerWatch& watch() { return watch_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Job {
    std::string model;
    InferRequest request;
    Resend resend;
    std::promise<InferReply> promise;
  };
  class Worker;
  struct RoomWait {  // of one call that was answered with 503
    int64_t num_tries = 0;
    Clock::time_point begin = {};
  };

  void work(Worker& worker);
  [[nodiscard]] InferReply perform(Worker& worker, Job& job);
  [[nodiscard]] HttpResponse send(Worker& worker, HttpRequest& request, const Job& job);
  void check_same_model(const std::string& model);
  [[nodiscard]] HttpResponse get(const std::string& target);
  [[nodiscard]] bool may_be_unloaded(const HttpResponse& response);
  void wait_until_loaded(const std::string& model);
  void wait_for_room(RoomWait& wait, const HttpResponse& response);
  [[nodiscard]] bool is_time_to_tell(const std::string& model, Clock::time_point now);
  [[nodiscard]] HttpHeaders headers() const;
  [[nodiscard]] bool show_local_token(HttpRequest& request) const;
  void pause(std::chrono::milliseconds time);
  void abort_calls();

  ClientOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int64_t num_idle_ = 0, num_working_ = 0, num_sent_ = 0;  // workers that wait, workers that have not ended, calls
  bool stopping_ = false;
  std::optional<bool> is_kedge_;
  std::map<std::string, ModelSignature> signatures_;
  std::map<std::string, Clock::time_point> told_;  // when waiting for a model, or for room (""), was last logged
  ServerWatch watch_;
};

}  // namespace kedge
