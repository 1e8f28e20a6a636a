#pragma once
// The token that a server makes for itself, where callers of the same user on the same machine find it: /tmp/kedge-UID/PORT.token, a file
// of mode 600 in a folder of mode 700. Knows no HTTP.
#include <cstdint>
#include <optional>
#include <string>

namespace kedge {

// There as long as it lives; one that a killed server left is replaced.
class LocalToken {
 public:
  // A UsageError where the folder is another user's or open to others.
  LocalToken(int64_t port, const std::string& token);
  ~LocalToken();
  LocalToken(const LocalToken&) = delete;
  LocalToken& operator=(const LocalToken&) = delete;

  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_, token_;
};

// Of the server at this address: none where that is not this machine, there is no such file, it is not ours alone, or another user
// listens on the port.
[[nodiscard]] std::optional<std::string> find_local_token(const std::string& host, int64_t port);

// May a word be shown to whoever listens on this port of this machine's loopback? Not where that is another user, root excepted.
[[nodiscard]] bool is_port_ours(int64_t port);

}  // namespace kedge
