#include "kedge/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr int kLockTries = 10;
constexpr std::chrono::milliseconds kLockPause{20};

std::string next_number(const Path& parent) {
  for (int64_t number = 0;; ++number) {
    const std::string name = str("version_", number);
    if (!is_folder(parent / name)) return name;
  }
}

}  // namespace

std::string time_as_version() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F_%H-%M-%S", &local)};
}

Path open_run_folder(const RunConfig& config, std::string_view now) {
  Path folder;
  if (config.explicit_log_dir) {
    folder = *config.explicit_log_dir;
  } else {
    folder = Path(config.exp_dir) / config.name;
    if (config.version) {
      folder /= *config.version;
    } else if (!config.resume_if_exists) {
      folder /= config.use_datetime_version ? std::string(now) : next_number(folder);
    }
  }
  make_folder(folder);
  return folder;
}

// Who only asks whether a folder is held holds it for a moment.
RunLock::RunLock(const Path& folder) : file_(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw Error(str((folder / ".lock").string(), ": cannot be opened"));
  for (int i = 0; i < kLockTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kLockPause);
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  }
  ::close(file_);
  throw UsageError(str(folder.string(), ": another run is at work in this folder"));
}

RunLock::~RunLock() { ::close(file_); }

bool is_run_held(const Path& folder) {
  const int file = ::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_held = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return is_held;
}

std::optional<Checkpoint> find_resume(const RunConfig& config, const Path& folder, const CheckpointStore& store) {
  std::optional<Checkpoint> newest = store.newest();
  check(!newest || config.resume_if_exists, folder.string(),
        ": holds checkpoints of an earlier run; exp_manager.resume_if_exists=true goes on with it, another explicit_log_dir starts anew");
  if (newest) newest = store.newest_sound();
  if (newest) return newest;
  if (config.resume_from_checkpoint) return open_checkpoint(*config.resume_from_checkpoint, "exp_manager.resume_from_checkpoint");
  check(config.resume_ignore_no_checkpoint || !config.resume_if_exists, folder.string(), ": no checkpoint to resume from");
  return std::nullopt;
}

Checkpoint open_checkpoint(const Path& folder, std::string_view key) {
  check(is_folder(folder), key, ": no folder ", folder.string());
  try {
    Checkpoint checkpoint = read_checkpoint(folder);
    verify_checkpoint(checkpoint);
    return checkpoint;
  } catch (const UsageError& error) {
    throw UsageError(str(key, ": not a whole checkpoint: ", error.what()));
  }
}

}  // namespace kedge
