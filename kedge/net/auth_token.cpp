#include "kedge/net/auth_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr size_t kMaxTokenBytes = 512;

// No more than a token could have is read: the file may be anything.
std::string read_start(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  check(fd >= 0, file, ": cannot be opened: ", std::strerror(errno));
  std::array<char, kMaxTokenBytes + 64> bytes{};
  size_t size = 0;
  ssize_t count = 0;
  while (size < bytes.size() && (count = read(fd, bytes.data() + size, bytes.size() - size)) > 0) size += static_cast<size_t>(count);
  struct stat facts {};
  const bool is_shared = fstat(fd, &facts) == 0 && (facts.st_mode & 077U) != 0;
  close(fd);
  check(count >= 0, file, ": cannot be read: ", std::strerror(errno));
  if (is_shared) log_warn(file, ": other users of this machine can read this token; run chmod 600 ", file);
  return {bytes.data(), size};
}

}  // namespace

std::string read_token_file(const std::string& file, const std::string& key) {
  std::string token = read_start(file);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) token.pop_back();
  check(!token.empty(), key, ": ", file, " is empty");
  const bool is_printable = std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
  check(is_printable && token.size() <= kMaxTokenBytes, key, ": ", file, " is not a token: expected one line of at most ", kMaxTokenBytes,
        " bytes of printable ASCII");
  return token;
}

bool is_same_token(std::string_view shown, std::string_view token) {
  unsigned difference = shown.size() == token.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(shown.size(), token.size()); ++i)
    difference |= static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(token[i]);
  return difference == 0;
}

bool shows_token(std::string_view authorization, std::string_view token) {
  return is_same_token(authorization, authorization_of(std::string(token)));
}

std::string authorization_of(const std::string& token) { return "Bearer " + token; }

}  // namespace kedge
