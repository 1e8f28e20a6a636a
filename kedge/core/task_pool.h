#pragma once
// Threads that share one queue of tasks: limited in number, created as needed.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kedge {

// post() may be called from several threads and never waits. A task must not throw. The destructor waits until all tasks are done.
class TaskPool {
 public:
  explicit TaskPool(size_t max_threads) : max_threads_(max_threads) {}
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  void post(std::function<void()> task);

 private:
  void run();

  size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> tasks_;
  size_t num_idle_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kedge
