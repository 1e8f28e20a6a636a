#pragma once
// Saves checkpoints on its own thread, so that training continues meanwhile, even if the disk is full.
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kedge/train/checkpoint/checkpoint_store.h"

namespace kedge {

// Used from one thread. `store` must outlive it and must not be used elsewhere between start() and finish().
class BackgroundSaver {
 public:
  explicit BackgroundSaver(CheckpointStore& store);
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  // Is a save worth starting? Not while one is running. Also if that cannot be told: the save then reports why.
  [[nodiscard]] bool wants(const CheckpointMeta& meta) const;
  // Waits for the save before it, then returns; `write` fills the folder on the other thread, so all it needs must live with it. A save
  // that fails is logged; earlier checkpoints are kept, and the next save retries.
  void start(CheckpointMeta meta, std::function<void(const Path& folder)> write);

  // Waits for the current save.
  void wait();
  // The same, with an Error if the newest one failed: training since the last good one is not on disk. If a signal ended it
  // while it waited for a server, that Interrupted.
  void finish();

  // Not while one is running.
  [[nodiscard]] int64_t num_failed() const { return num_failed_; }
  [[nodiscard]] bool has_failed() const { return !problem_.empty(); }  // the newest one
  // Of the checkpoints on disk, ascending; after a save that failed, of those before it.
  [[nodiscard]] const std::vector<int64_t>& saved_steps() const { return saved_steps_; }

 private:
  CheckpointStore& store_;
  std::thread thread_;
  std::string problem_;  // of the newest save; empty: none
  std::exception_ptr interrupted_;
  int64_t num_failed_ = 0;
  std::vector<int64_t> saved_steps_;
};

}  // namespace kedge
