#pragma once
// Keeps a second run out of a run's folder: by the system's lock, and if that is not enough, as between machines that share a file
// system, by a note in the same file, which its holder updates every few seconds.
#include <sys/file.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "kedge/core/files.h"

namespace kedge {

// The lock's system functions; tests replace them.
struct LockSystem {
  int (*flock)(int file, int operation) = ::flock;
  std::string boot = {};                 // equal for processes of one machine; empty: from the system
  std::chrono::milliseconds beat{5000};  // interval at which a holder updates its note
};

// Holds a run's folder for this process, so that no second run writes into it. A locked folder is a UsageError that names the holder;
// the system releases it when the process ends, however that happens. The note of another machine, or any note if the file system has
// no locks, is watched for three beats: one that does not change was left by a run that was killed.
class RunLock {
 public:
  explicit RunLock(const Path& folder, LockSystem system = {});
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  bool take_lock();
  void watch_note() const;
  void write_note(int64_t beat);
  void keep_beating();

  Path folder_;
  LockSystem system_;
  int file_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_over_ = false, has_warned_ = false;
  std::thread thread_;
};

// Is a run active in the folder? Changes nothing there. Also false if that cannot be determined.
[[nodiscard]] bool is_run_held(const Path& folder, const LockSystem& system = {});

}  // namespace kedge
