#pragma once
// Calls that wait for their turn, and the one thread that runs them: in the order of arrival, compatible ones as one batch. Independent of
// HTTP.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kedge/net/batch_plan.h"
#include "kedge/net/served_model.h"
#include "kedge/net/server_stats.h"

namespace kedge {

struct Call {
  size_t model = 0;
  InferRequest request = {};
  int64_t rows = 1;
  // Exactly one of these is called, once, on the queue's thread.
  std::function<void(ServedResult result)> done = {};
  std::function<void(std::exception_ptr error)> failed = {};
  std::function<bool()> is_gone = {};  // has the caller gone?
};

struct QueueOptions {
  // Limits of waiting calls: those that are always executed, and others. Calls that wait for a training call must not block it.
  int64_t max_calls = 4096;
  int64_t max_merged_rows = 0;          // 0: no limit
  bool merge = true;                    // false: every call runs alone
  std::function<void()> on_start = {};  // the first thing the queue's thread does
};

// Thread-safe. `models` and `stats` must outlive it.
class CallQueue {
 public:
  CallQueue(const QueueOptions& options, const std::vector<ServedModel>& models, std::deque<ModelStats>& stats);
  ~CallQueue();  // stops
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // False: the queue is full, and the call is dropped. A RequestError (503) after stop().
  [[nodiscard]] bool add(Call call);
  // The running batch ends; waiting calls fail with a RequestError (503).
  void stop();
  [[nodiscard]] int64_t size();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Call call;
    std::string shape_key;
    Clock::time_point arrival;
    bool may_run = true;
  };

  void run();
  [[nodiscard]] bool is_given_up(Entry& entry);
  [[nodiscard]] BatchPlan plan();
  [[nodiscard]] bool waits_for_company(const Entry& entry, Clock::time_point now) const;
  void execute(std::vector<Entry> batch);
  [[nodiscard]] ServedResult compute(const std::vector<Entry>& batch) const;

  QueueOptions options_;
  const std::vector<ServedModel>& models_;
  std::deque<ModelStats>& stats_;
  std::vector<BatchRules> rules_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> waiting_;
  int64_t num_unanswered_ = 0;
  Clock::time_point last_company_;  // when a call arrived while another was pending
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kedge
