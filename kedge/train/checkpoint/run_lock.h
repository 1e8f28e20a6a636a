#pragma once
// Keeps a second run out of a run's folder: by the system's lock, and where that does not reach, as between machines that share a file
// system, by a note in the same file, which its holder changes every few seconds.
#include <sys/file.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "kedge/core/files.h"

namespace kedge {

// What a lock stands on; tests have their own.
struct LockSystem {
  int (*flock)(int file, int operation) = ::flock;
  std::string boot = {};                 // equal for processes of one machine; empty: the system's own word for it
  std::chrono::milliseconds beat{5000};  // a holder changes its note so often
};

// Holds a run's folder for this process, so that no second run writes into it. A folder that is held is a UsageError that names the holder;
// the system lets go of it when the process ends, however that happens. The note of another machine, or any note where the file system has
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

// Is a run at work in the folder? Changes nothing there. False too where that cannot be found out.
[[nodiscard]] bool is_run_held(const Path& folder, const LockSystem& system = {});

}  // namespace kedge
