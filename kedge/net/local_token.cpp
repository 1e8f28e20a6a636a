#include "kedge/net/local_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/core/identity.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/own_host.h"

namespace kedge {
namespace {

std::string token_folder() { return str("/tmp/kedge-", geteuid()); }
std::string token_path(int64_t port) { return str(token_folder(), "/", port, ".token"); }

bool is_ours_alone(const std::string& path, mode_t kind) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && (facts.st_mode & S_IFMT) == kind && facts.st_uid == geteuid() && (facts.st_mode & 077U) == 0;
}

std::optional<std::string> read_local(int64_t port) {
  if (!is_ours_alone(token_folder(), S_IFDIR) || !is_ours_alone(token_path(port), S_IFREG)) return std::nullopt;
  try {
    return read_token_file(token_path(port), "token");
  } catch (const UsageError&) {
    return std::nullopt;  // it is removed with its server, perhaps just now
  }
}

// One line of /proc/net/tcp: "0: 0100007F:15B4 00000000:0000 0A ... UID ...".
bool is_foreign_listener(const std::string& line, int64_t port) {
  std::istringstream words(line);
  std::string number, local, remote, state, skipped;
  uint64_t uid = 0;
  if (!(words >> number >> local >> remote >> state >> skipped >> skipped >> skipped >> uid) || state != "0A") return false;
  const size_t colon = local.find(':');
  if (colon == std::string::npos || std::strtoll(local.c_str() + colon + 1, nullptr, 16) != port) return false;
  return uid != geteuid() && uid != 0;
}

}  // namespace

LocalToken::LocalToken(int64_t port, const std::string& token) : file_(token_path(port)), token_(token) {
  const std::string folder = token_folder();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw Error(str(folder, ": cannot be created: ", std::strerror(errno)));
  check(is_ours_alone(folder, S_IFDIR), folder,
        ": is not private to this user (mode 700), so no token is written there: remove it, or give the server a token_file");
  const std::string temporary = str(file_, ".", getpid());
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  const std::string line = token + "\n";
  const bool is_written = fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (fd >= 0) close(fd);
  if (!is_written || rename(temporary.c_str(), file_.c_str()) != 0)
    throw Error(str(file_, ": cannot be written: ", std::strerror(errno), "; a token_file needs no such file"));
}

LocalToken::~LocalToken() {
  try {
    if (read_text(file_) == token_ + "\n") unlink(file_.c_str());
  } catch (const std::exception&) {  // it was removed
  }
}

std::optional<std::string> find_local_token(const std::string& host, int64_t port) {
  if (!is_loopback(host) && host != host_name()) return std::nullopt;
  return is_port_ours(port) ? read_local(port) : std::nullopt;
}

bool is_port_ours(int64_t port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);)
      if (is_foreign_listener(line, port)) return false;
  }
  return true;
}

}  // namespace kedge
