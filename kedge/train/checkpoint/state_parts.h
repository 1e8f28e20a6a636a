#pragma once
// A checkpoint written by several ranks at once. All write into a folder next to the checkpoints, those above 0 in the background; rank 0
// waits for the others there and moves everything into the checkpoint, which then appears as a whole. Needs no other connection than the
// disk that all ranks see.
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

  // Waits for the previous part, then returns; `write` fills the folder on another thread. If that fails, rank 0 gets the reason.
  void start(const Path& stage, int rank, std::function<void(const Path& stage)> write);
  // An Error if not even the reason could be written: rank 0 still waits for it, so this rank must end.
  void wait();

 private:
  std::future<void> writing_;
};

// The same on this thread, with the Error of wait().
void write_part(const Path& stage, int rank, const std::function<void(const Path& stage)>& write);

// Of the ranks above 0, those that have a part to write. Collective.
[[nodiscard]] std::vector<int> ranks_with_parts(const Group& group, bool has_part);

// The folder for the parts of a step's checkpoint, in a run's folder.
[[nodiscard]] Path parts_stage(const Path& run_folder, int64_t step);
// Removes what a killed run left.
void remove_parts(const Path& run_folder);

// On rank 0: writes its own part, waits for those of these ranks and moves all of them into `folder`. An Error if one of them could not be
// written. Without other ranks it writes into `folder`.
void write_together(const Path& stage, const std::vector<int>& others, const Path& folder,
                    const std::function<void(const Path& stage)>& write);

}  // namespace kedge
