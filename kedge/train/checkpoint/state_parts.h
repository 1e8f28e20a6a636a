#pragma once
// A checkpoint's state written by several ranks at once. Each writes its part into a folder next to the checkpoints, in the background;
// rank 0 waits for the others' there and moves them into the checkpoint, which then appears as a whole. Needs no other connection than
// the disk that all ranks see.
#include <functional>
#include <thread>
#include <vector>

#include "kedge/core/files.h"

namespace kedge {

// Used from one thread, on any rank.
class PartWriter {
 public:
  PartWriter() = default;
  ~PartWriter() { wait(); }
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // Waits for the previous part, then returns; `write` makes the file on another thread. If that fails, rank 0 gets the reason.
  void start(const Path& stage, int rank, std::function<void(const Path& stage)> write);
  void wait();

 private:
  std::thread thread_;
};

// The folder for the parts of a step's state, in a run's folder.
[[nodiscard]] Path parts_stage(const Path& run_folder, int64_t step);
// Removes what a killed run left.
void remove_parts(const Path& run_folder);

// On rank 0: waits for the parts of these ranks and moves their files into `state`. An Error if one of them could not be written.
void collect_parts(const Path& stage, const std::vector<int>& ranks, const Path& state);

}  // namespace kedge
