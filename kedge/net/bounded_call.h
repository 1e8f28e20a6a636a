#pragma once
// A call that cannot be interrupted, such as the system's look-up of a host name, with a time limit.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace kedge {

// Runs `work` on its own thread. None if that takes longer than `limit`, or `is_given_up`, which is polled, returns true:
// the thread is then left behind, so `work` must own all it uses. Exceptions of `work` are thrown here.
template <typename T>
[[nodiscard]] std::optional<T> call_at_most(std::function<T()> work, std::chrono::milliseconds limit,
                                            const std::function<bool()>& is_given_up) {
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<T> result;
    std::exception_ptr error;
  };
  const auto state = std::make_shared<State>();
  std::thread([state, work = std::move(work)] {
    std::optional<T> result;
    std::exception_ptr error;
    try {
      result = work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(state->mutex);
    state->result = std::move(result);
    state->error = error;
    state->done.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto is_done = [&] { return state->result.has_value() || state->error; };
  while (!is_done() && std::chrono::steady_clock::now() < end && !is_given_up())
    state->done.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(50)), is_done);
  if (state->error) std::rethrow_exception(state->error);
  return std::move(state->result);
}

}  // namespace kedge
