#pragma once
// A checkpoint's state written by several ranks at once. Each writes its part into a folder next to the checkpoints, in the background;
// rank 0 waits for the others' there and moves them into the checkpoint, which then appears as a whole. Needs no other connection than
// the disk that all ranks see.
#include <functional>
#include <future>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/dist/group.h"

namespace kedge {

// Used from one thread, on any rank.
class PartWriter {
 public:
  PartWriter() = default;
  ~PartWriter() = default;  // waits
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // Waits for the previous part, then returns; `write` makes the file on another thread. If that fails, rank 0 gets the reason.
  void start(const Path& stage, int rank, std::function<void(const Path& stage)> write);
  // An Error if not even the reason could be written: rank 0 still waits for it, so this rank must end.
  void wait();

 private:
  std::future<void> writing_;
};

// The same on this thread, with the Error of wait().
void write_part(const Path& stage, int rank, const std::function<void(const Path& stage)>& write);

// Of the ranks above 0, those that have a part of a state. Collective.
[[nodiscard]] std::vector<int> ranks_with_parts(const Group& group, bool has_part);

// The folder for the parts of a step's state, in a run's folder.
[[nodiscard]] Path parts_stage(const Path& run_folder, int64_t step);
// Removes what a killed run left.
void remove_parts(const Path& run_folder);

// On rank 0: waits for the parts of these ranks and moves their files into `state`. An Error if one of them could not be written.
void collect_parts(const Path& stage, const std::vector<int>& ranks, const Path& state);

}  // namespace kedge
