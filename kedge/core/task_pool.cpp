#include "kedge/core/task_pool.h"

#include <system_error>
#include <utility>

namespace kedge {

TaskPool::~TaskPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (num_idle_ < tasks_.size() && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // no more threads available: the existing ones run it
      if (threads_.empty()) {
        tasks_.pop_back();
        throw;
      }
    }
  }
  news_.notify_one();
}

void TaskPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++num_idle_;
    news_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
    --num_idle_;
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next one begins
    lock.lock();
  }
}

}  // namespace kedge
