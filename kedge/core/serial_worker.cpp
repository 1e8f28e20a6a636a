#include "kedge/core/serial_worker.h"

#include <exception>
#include <utility>

#include "kedge/core/log.h"

namespace kedge {

SerialWorker::SerialWorker() : thread_([this] { run(); }) {}

SerialWorker::~SerialWorker() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  news_.notify_one();
  thread_.join();
}

void SerialWorker::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  news_.notify_one();
}

void SerialWorker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& error) {
      log_error("a background task failed: ", error.what());
    }
    task = nullptr;  // what it holds goes before the next one begins
    lock.lock();
  }
}

}  // namespace kedge
