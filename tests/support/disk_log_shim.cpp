// A library to be preloaded: writes down every call that changes files below a folder, with the bytes, in the order in which the disk sees
// them; power_cut.py makes of that what a power cut would have left. Processes may share a log. The environment says:
//   KEDGE_DISK_FOLDER   an absolute path
//   KEDGE_DISK_LOG      the log: a line of JSON for each call, followed by as many bytes as its "size" says where it is a write
//   KEDGE_DISK_CUT_AT   the process kills itself before its call of this number, from 1 on; 0: never
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <vector>

#include "tests/support/shim.h"

namespace {

using shim::absolute;
using shim::real;
using shim::variable;

// One call at a time, over all threads and processes: what stands in the log happened in its order.
class Disk {
 public:
  Disk()
      : folder_(variable("KEDGE_DISK_FOLDER")),
        cut_at_(std::atoll(variable("KEDGE_DISK_CUT_AT").c_str())),
        log_(shim::open_to_append(variable("KEDGE_DISK_LOG"))) {}

  [[nodiscard]] bool holds(const std::string& path) const { return log_ >= 0 && path.starts_with(folder_ + "/"); }
  [[nodiscard]] bool is_it(const std::string& path) const { return log_ >= 0 && path == folder_; }

  void begin() {
    mutex_.lock();
    if (++num_calls_ == cut_at_) ::kill(::getpid(), SIGKILL);
    ::flock(log_, LOCK_EX);
  }
  void end(const std::string& line, std::string_view bytes = {}) {
    if (!line.empty()) shim::write_all(log_, line + "\n" + std::string(bytes));
    ::flock(log_, LOCK_UN);
    mutex_.unlock();
  }

 private:
  std::string folder_;
  int64_t cut_at_, num_calls_ = 0;
  int log_;
  std::mutex mutex_;
};

Disk& disk() {
  static Disk one;
  return one;
}

std::string text(const char* key, const std::string& value) { return std::string(", \"") + key + "\": \"" + value + "\""; }
std::string number(const char* key, int64_t value) { return std::string(", \"") + key + "\": " + std::to_string(value); }
std::string line(const char* call, const std::string& rest) { return std::string("{\"call\": \"") + call + "\"" + rest + "}"; }

int64_t inode_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<int64_t>(info.st_ino) : 0;
}

template <typename Call>
auto opened(const std::string& path, int flags, const Call& call) {
  if ((flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) == 0 || !disk().holds(path)) return call();
  disk().begin();
  const int fd = call();
  const int error = errno;
  disk().end(fd < 0 ? ""
                    : line("open", text("path", path) + number("inode", inode_of(fd)) + number("cut", (flags & O_TRUNC) != 0 ? 1 : 0)));
  errno = error;
  return fd;
}

// `at` below 0: where the file stands then.
template <typename Call>
ssize_t written(int fd, const void* bytes, int64_t at, const Call& call) {
  if (!disk().holds(absolute(fd, ""))) return call();
  disk().begin();
  const ssize_t count = call();
  const int error = errno;
  if (count < 0) {
    disk().end("");
  } else {
    if (at < 0) at = ::lseek(fd, 0, SEEK_CUR) - count;
    std::vector<char> copy;
    if (bytes == nullptr && count > 0) {  // the system copied them from elsewhere
      static const auto open_it = real<int(const char*, int, ...)>("open");
      static const auto read_it = real<ssize_t(int, void*, size_t, off_t)>("pread");
      const int file = open_it(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
      copy.resize(static_cast<size_t>(count));
      if (read_it(file, copy.data(), copy.size(), at) != count) std::abort();
      ::close(file);
      bytes = copy.data();
    }
    disk().end(line("write", number("inode", inode_of(fd)) + number("at", at) + number("size", count)),
               {static_cast<const char*>(bytes), static_cast<size_t>(count)});
  }
  errno = error;
  return count;
}

template <typename Call>
int changed(bool is_ours, const std::string& entry, const Call& call) {
  if (!is_ours) return call();
  disk().begin();
  const int result = call();
  const int error = errno;
  disk().end(result == 0 ? entry : "");
  errno = error;
  return result;
}

int synced(int fd, const char* name) {
  const auto next = real<int(int)>(name);
  const std::string path = absolute(fd, "");
  return changed(disk().holds(path) || disk().is_it(path), line("fsync", text("path", path) + number("inode", inode_of(fd))),
                 [&] { return next(fd); });
}

int moved(const std::string& from, const std::string& to, unsigned flags, const auto& call) {
  const std::string entry =
      line("rename", text("path", from) + text("to", to) + number("exchange", (flags & RENAME_EXCHANGE) != 0 ? 1 : 0));
  return changed(disk().holds(from) || disk().holds(to), entry, call);
}

int removed(const std::string& path, const auto& call) { return changed(disk().holds(path), line("remove", text("path", path)), call); }

}  // namespace

extern "C" {

SHIM_OPEN(open)
SHIM_OPEN(open64)
SHIM_OPEN_AT(openat)
SHIM_OPEN_AT(openat64)

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = real<ssize_t(int, const void*, size_t)>("write");
  return written(fd, bytes, -1, [&] { return next(fd, bytes, size); });
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = real<ssize_t(int, const iovec*, int)>("writev");
  return written(fd, nullptr, -1, [&] { return next(fd, parts, count); });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  static const auto next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return written(fd, bytes, at, [&] { return next(fd, bytes, size, at); });
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  static const auto next = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return written(fd, bytes, at, [&] { return next(fd, bytes, size, at); });
}

ssize_t sendfile(int out, int in, off_t* offset, size_t count) noexcept {
  static const auto next = real<ssize_t(int, int, off_t*, size_t)>("sendfile");
  return written(out, nullptr, -1, [&] { return next(out, in, offset, count); });
}

ssize_t sendfile64(int out, int in, off64_t* offset, size_t count) noexcept {
  static const auto next = real<ssize_t(int, int, off64_t*, size_t)>("sendfile64");
  return written(out, nullptr, -1, [&] { return next(out, in, offset, count); });
}

ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t size, unsigned flags) {
  static const auto next = real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  return written(out, nullptr, to == nullptr ? -1 : *to, [&] { return next(in, from, out, to, size, flags); });
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto next = real<int(int, off_t)>("ftruncate");
  return changed(disk().holds(absolute(fd, "")), line("cut", number("inode", inode_of(fd)) + number("to", size)),
                 [&] { return next(fd, size); });
}

int ftruncate64(int fd, off64_t size) noexcept {
  static const auto next = real<int(int, off64_t)>("ftruncate64");
  return changed(disk().holds(absolute(fd, "")), line("cut", number("inode", inode_of(fd)) + number("to", size)),
                 [&] { return next(fd, size); });
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int(const char*, mode_t)>("mkdir");
  const std::string whole = absolute(AT_FDCWD, path);
  return changed(disk().holds(whole), line("mkdir", text("path", whole)), [&] { return next(path, mode); });
}

int link(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("link");
  const std::string whole = absolute(AT_FDCWD, to);
  return changed(disk().holds(whole), line("link", text("path", absolute(AT_FDCWD, from)) + text("to", whole)),
                 [&] { return next(from, to); });
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("rename");
  return moved(absolute(AT_FDCWD, from), absolute(AT_FDCWD, to), 0, [&] { return next(from, to); });
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto next = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return moved(absolute(from_folder, from), absolute(to_folder, to), flags, [&] { return next(from_folder, from, to_folder, to, flags); });
}

int unlink(const char* path) noexcept {
  static const auto next = real<int(const char*)>("unlink");
  return removed(absolute(AT_FDCWD, path), [&] { return next(path); });
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto next = real<int(int, const char*, int)>("unlinkat");
  return removed(absolute(folder, path), [&] { return next(folder, path, flags); });
}

int rmdir(const char* path) noexcept {
  static const auto next = real<int(const char*)>("rmdir");
  return removed(absolute(AT_FDCWD, path), [&] { return next(path); });
}

int remove(const char* path) noexcept {
  static const auto next = real<int(const char*)>("remove");
  return removed(absolute(AT_FDCWD, path), [&] { return next(path); });
}

}  // extern "C"
