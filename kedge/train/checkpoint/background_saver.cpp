#include "kedge/train/checkpoint/background_saver.h"

#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stop.h"

namespace kedge {

namespace {

std::vector<int64_t> steps_in(const CheckpointStore& store) {
  std::vector<int64_t> steps;
  for (const Checkpoint& one : store.list())
    if (steps.empty() || steps.back() != one.step()) steps.push_back(one.step());
  return steps;
}

}  // namespace

BackgroundSaver::BackgroundSaver(CheckpointStore& store) : store_(store), saved_steps_(steps_in(store)) {}

BackgroundSaver::~BackgroundSaver() { wait(); }

void BackgroundSaver::wait() {
  if (thread_.joinable()) thread_.join();
}

bool BackgroundSaver::wants(const CheckpointMeta& meta) const {
  try {
    return store_.wants(meta);
  } catch (const std::exception&) {
    return true;
  }
}

void BackgroundSaver::start(CheckpointMeta meta, std::function<void(const Path& folder)> write) {
  wait();
  problem_.clear();
  interrupted_ = nullptr;
  thread_ = std::thread([this, meta = std::move(meta), write = std::move(write)] {
    const int64_t step = Checkpoint{{}, meta}.step();
    try {
      store_.save(meta, write);
      saved_steps_ = steps_in(store_);
    } catch (const Interrupted&) {
      interrupted_ = std::current_exception();
    } catch (const std::exception& error) {
      problem_ = str("the checkpoint of step ", step, " could not be saved: ", error.what());
      ++num_failed_;
      log_error(problem_, "; the run continues, earlier checkpoints are kept, and the next save retries");
    }
  });
}

void BackgroundSaver::finish() {
  wait();
  if (interrupted_) std::rethrow_exception(interrupted_);
  if (!problem_.empty()) throw Error(problem_);
}

}  // namespace kedge
