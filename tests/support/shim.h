#pragma once
// What libraries that are preloaded before kedge share (fault_shim.cpp, disk_log_shim.cpp): the system's own functions behind theirs, and
// the paths that calls are about. None of this may call what such a library replaces.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace shim {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

inline void write_all(int fd, std::string_view bytes) {
  static const auto write_it = real<ssize_t(int, const void*, size_t)>("write");
  while (!bytes.empty()) {
    const ssize_t count = write_it(fd, bytes.data(), bytes.size());
    if (count < 0) std::abort();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

inline int open_to_append(const std::string& file) {
  static const auto open_it = real<int(const char*, int, ...)>("open");
  return open_it(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

inline std::string absolute(int folder, std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  std::array<char, 4096> base{};
  const std::string link = folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(folder);
  if (::readlink(link.c_str(), base.data(), base.size() - 1) < 0) return std::string(path);
  return path.empty() ? base.data() : base.data() + ("/" + std::string(path));
}

inline mode_t mode_of(int flags, va_list arguments) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0; }

}  // namespace shim

// open and its kin, each as opened(absolute path, flags, call of the system's own).
#define SHIM_OPEN(NAME)                                                                            \
  int NAME(const char* path, int flags, ...) {                                                     \
    va_list arguments;                                                                             \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = shim::mode_of(flags, arguments);                                           \
    va_end(arguments);                                                                             \
    static const auto next = shim::real<int(const char*, int, ...)>(#NAME);                        \
    return opened(shim::absolute(AT_FDCWD, path), flags, [&] { return next(path, flags, mode); }); \
  }
#define SHIM_OPEN_AT(NAME)                                                                               \
  int NAME(int folder, const char* path, int flags, ...) {                                               \
    va_list arguments;                                                                                   \
    va_start(arguments, flags);                                                                          \
    const mode_t mode = shim::mode_of(flags, arguments);                                                 \
    va_end(arguments);                                                                                   \
    static const auto next = shim::real<int(int, const char*, int, ...)>(#NAME);                         \
    return opened(shim::absolute(folder, path), flags, [&] { return next(folder, path, flags, mode); }); \
  }
