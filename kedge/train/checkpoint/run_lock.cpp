#include "kedge/train/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sstream>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr int kLockTries = 10, kWatchedBeats = 3, kLooksABeat = 5;
constexpr std::chrono::milliseconds kLockPause{20};
constexpr size_t kNoteBytes = 512;

// A note's fields are separated by blanks, so none may be empty.
std::string or_unknown(std::string text) { return text.empty() ? "unknown" : text; }
std::string boot_of_this_machine() { return or_unknown(boot_id()); }
std::string name_of_this_machine() { return or_unknown(host_name()); }

std::string read_note(int file) {
  std::array<char, kNoteBytes> bytes{};
  const ssize_t size = ::pread(file, bytes.data(), bytes.size(), 0);
  return size <= 0 ? "" : std::string(bytes.data(), static_cast<size_t>(size));
}

struct Note {
  std::string boot, host, process;
};

Note parse_note(const std::string& text) {
  Note note;
  std::istringstream(text) >> note.boot >> note.host >> note.process;
  return note;
}

std::string holder_in(const std::string& text) {
  const Note note = parse_note(text);
  return note.process.empty() ? "" : str(" (process ", note.process, " on ", note.host, ")");
}

[[noreturn]] void throw_held(const Path& folder, const std::string& note) {
  throw UsageError(str(folder.string(), ": another run is using this folder", holder_in(note)));
}

}  // namespace

RunLock::RunLock(const Path& folder, LockSystem system)
    : folder_(folder), system_(std::move(system)), file_(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw_file_error(errno, str((folder / ".lock").string(), ": cannot be opened: ", std::strerror(errno)));
  if (system_.boot.empty()) system_.boot = boot_of_this_machine();
  try {
    const bool has_lock = take_lock();
    const std::string note = read_note(file_);
    if (!note.empty() && (!has_lock || parse_note(note).boot != system_.boot)) watch_note();
    write_note(0);
  } catch (...) {
    ::close(file_);
    throw;
  }
  thread_ = std::thread([this] { keep_beating(); });
}

RunLock::~RunLock() {
  {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
  }
  ends_.notify_all();
  thread_.join();
  static_cast<void>(::ftruncate(file_, 0) == 0);  // a note that stays is watched by the next one, which only costs time
  ::close(file_);
}

// False if the file system has no locks. Checking whether a folder is locked locks it briefly.
bool RunLock::take_lock() {
  for (int i = 0; i < kLockTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kLockPause);
    if (system_.flock(file_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) continue;
    log_warn((folder_ / ".lock").string(), ": this file system has no locks (", std::strerror(errno),
             "); a second run in this folder is detected by a note in that file, unless both start at the same moment");
    return false;
  }
  throw_held(folder_, read_note(file_));
}

void RunLock::watch_note() const {
  const std::string before = read_note(file_);
  log_info(folder_.string(), ": a run", holder_in(before), " did not record its end; watching for ",
           std::chrono::duration<double>(system_.beat * kWatchedBeats).count(), " s whether it is still running");
  for (int i = 0; i < kWatchedBeats * kLooksABeat; ++i) {
    std::this_thread::sleep_for(system_.beat / kLooksABeat);
    const std::string now = read_note(file_);
    if (now.empty()) return;
    if (now != before) throw_held(folder_, now);
  }
}

void RunLock::write_note(int64_t beat) {
  std::string note = str(system_.boot, " ", name_of_this_machine(), " ", ::getpid(), " ", beat);
  note.resize(kNoteBytes - 1, ' ');  // constant length, so that no partial note is read
  note += '\n';
  if (::pwrite(file_, note.data(), note.size(), 0) == static_cast<ssize_t>(note.size()) || std::exchange(has_warned_, true)) return;
  log_warn((folder_ / ".lock").string(), ": cannot be written: ", std::strerror(errno), "; a run on another machine may not see this one");
}

void RunLock::keep_beating() {
  std::unique_lock guard(mutex_);
  for (int64_t beat = 1; !ends_.wait_for(guard, system_.beat, [this] { return is_over_; }); ++beat) write_note(beat);
}

bool is_run_held(const Path& folder, const LockSystem& system) {
  const int file = ::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_free = system.flock(file, LOCK_SH | LOCK_NB) == 0;
  const bool is_locked = !is_free && errno == EWOULDBLOCK;
  const std::string boot = parse_note(read_note(file)).boot;
  struct stat info {};
  const bool is_fresh = ::fstat(file, &info) == 0 && std::time(nullptr) - info.st_mtime <= (kWatchedBeats + 1) * system.beat.count() / 1000;
  ::close(file);
  const std::string ours = system.boot.empty() ? boot_of_this_machine() : system.boot;
  return is_locked || (!boot.empty() && is_fresh && (!is_free || boot != ours));
}

}  // namespace kedge
