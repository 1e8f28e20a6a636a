// A library to be preloaded: fails one call of the system on a path below a folder, as a disk would, or one that connects to a server.
// The environment says which:
// - KEDGE_FAULT_FOLDER: an absolute path; calls on other files are left alone
// - KEDGE_FAULT_PART: only calls whose path has this in it (default: all)
// - KEDGE_FAULT_CALL: open, read, pread, write, fsync, ftruncate, mkdir, link, rename, unlink, flock or connect; all: each of them counts
// - KEDGE_FAULT_N: the first call to fail, from 1 on; 0: none
// - KEDGE_FAULT_COUNT: how many fail from there on (default: 1)
// - KEDGE_FAULT_ERRNO: with this number, as EIO is 5
// - KEDGE_FAULT_KILL_N: the process is killed before this call
// - KEDGE_FAULT_REPORT: a file to which every such call is appended, a line each: "fsync PATH", with "FAILED" before one that fails
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/support/shim.h"

namespace {

using shim::absolute;
using shim::real;
using shim::variable;

struct Fault {
  std::string folder = variable("KEDGE_FAULT_FOLDER"), call = variable("KEDGE_FAULT_CALL"), report = variable("KEDGE_FAULT_REPORT"),
              part = variable("KEDGE_FAULT_PART");
  int64_t n = std::atoll(variable("KEDGE_FAULT_N").c_str());
  int64_t kill_n = std::atoll(variable("KEDGE_FAULT_KILL_N").c_str());
  int64_t count = std::max<int64_t>(1, std::atoll(variable("KEDGE_FAULT_COUNT").c_str()));
  int error = std::atoi(variable("KEDGE_FAULT_ERRNO").c_str());
  std::atomic<int64_t> num_calls = 0;
};

Fault& the_fault() {
  static Fault fault;
  return fault;
}

// Is this call the one to fail? Then errno is set.
bool counts_and_fails(std::string_view call, const std::string& on) {
  Fault& fault = the_fault();
  if (on.find(fault.part) == std::string::npos) return false;
  const int64_t number = ++fault.num_calls;
  if (number == fault.kill_n) ::kill(::getpid(), SIGKILL);
  const bool is_it = fault.n > 0 && number >= fault.n && number < fault.n + fault.count;
  const int before = errno;
  if (!fault.report.empty()) {
    const int fd = shim::open_to_append(fault.report);
    if (fd >= 0) {
      shim::write_all(fd, (is_it ? "FAILED " : "") + std::string(call) + " " + on + "\n");
      ::close(fd);
    }
  }
  errno = is_it ? fault.error : before;
  return is_it;
}

bool is_asked_for(std::string_view call) { return the_fault().call == call || the_fault().call == "all"; }

bool fails(std::string_view call, int folder, std::string_view path) {
  if (!is_asked_for(call)) return false;
  const std::string whole = absolute(folder, path);
  return whole.starts_with(the_fault().folder + "/") && counts_and_fails(call, whole);
}

template <typename Call>
int opened(const std::string& path, int /*flags*/, const Call& call) {
  return fails("open", AT_FDCWD, path) ? -1 : call();
}

bool fails_at(std::string_view call, const char* path) { return fails(call, AT_FDCWD, path); }
bool fails_on(std::string_view call, int fd) { return fails(call, fd, ""); }

bool fails_to_connect(const sockaddr* address) {
  if (!is_asked_for("connect") || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return false;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto* four = reinterpret_cast<const sockaddr_in*>(address);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
  const bool is_four = address->sa_family == AF_INET;
  const void* host = is_four ? static_cast<const void*>(&four->sin_addr) : &six->sin6_addr;
  ::inet_ntop(address->sa_family, host, text.data(), text.size());
  return counts_and_fails("connect", text.data() + (":" + std::to_string(ntohs(is_four ? four->sin_port : six->sin6_port))));
}

}  // namespace

extern "C" {

SHIM_OPEN(open)
SHIM_OPEN(open64)
SHIM_OPEN_AT(openat)
SHIM_OPEN_AT(openat64)

DIR* opendir(const char* path) {
  static const auto next = real<DIR*(const char*)>("opendir");
  return fails_at("open", path) ? nullptr : next(path);
}

ssize_t read(int fd, void* bytes, size_t size) {
  static const auto next = real<ssize_t(int, void*, size_t)>("read");
  return fails_on("read", fd) ? -1 : next(fd, bytes, size);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = real<ssize_t(int, const void*, size_t)>("write");
  return fails_on("write", fd) ? -1 : next(fd, bytes, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = real<ssize_t(int, const iovec*, int)>("writev");
  return fails_on("write", fd) ? -1 : next(fd, parts, count);
}

#define WRITE_AT_AS(NAME, OFFSET)                                                    \
  ssize_t NAME(int fd, const void* bytes, size_t size, OFFSET offset) {              \
    static const auto next = real<ssize_t(int, const void*, size_t, OFFSET)>(#NAME); \
    return fails_on("write", fd) ? -1 : next(fd, bytes, size, offset);               \
  }
WRITE_AT_AS(pwrite, off_t)
WRITE_AT_AS(pwrite64, off64_t)

#define READ_AT_AS(NAME, OFFSET)                                               \
  ssize_t NAME(int fd, void* bytes, size_t size, OFFSET offset) {              \
    static const auto next = real<ssize_t(int, void*, size_t, OFFSET)>(#NAME); \
    return fails_on("pread", fd) ? -1 : next(fd, bytes, size, offset);         \
  }
READ_AT_AS(pread, off_t)
READ_AT_AS(pread64, off64_t)

#define CUT_AS(NAME, OFFSET)                                \
  int NAME(int fd, OFFSET size) noexcept {                  \
    static const auto next = real<int(int, OFFSET)>(#NAME); \
    return fails_on("ftruncate", fd) ? -1 : next(fd, size); \
  }
CUT_AS(ftruncate, off_t)
CUT_AS(ftruncate64, off64_t)

int fsync(int fd) {
  static const auto next = real<int(int)>("fsync");
  return fails_on("fsync", fd) ? -1 : next(fd);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int(const char*, mode_t)>("mkdir");
  return fails_at("mkdir", path) ? -1 : next(path, mode);
}

int link(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("link");
  return fails_at("link", to) ? -1 : next(from, to);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("rename");
  return fails_at("rename", to) ? -1 : next(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto next = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return fails("rename", to_folder, to) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  static const auto next = real<int(const char*)>("unlink");
  return fails_at("unlink", path) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto next = real<int(int, const char*, int)>("unlinkat");
  return fails("unlink", folder, path) ? -1 : next(folder, path, flags);
}

int remove(const char* path) noexcept {
  static const auto next = real<int(const char*)>("remove");
  return fails_at("unlink", path) ? -1 : next(path);
}

int flock(int fd, int operation) noexcept {
  static const auto next = real<int(int, int)>("flock");
  return fails_on("flock", fd) ? -1 : next(fd, operation);
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  static const auto next = real<int(int, const sockaddr*, socklen_t)>("connect");
  return fails_to_connect(address) ? -1 : next(fd, address, size);
}

}  // extern "C"
