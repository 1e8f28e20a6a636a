#pragma once
// The token that a server creates, where callers of the same user on the same machine find it: /tmp/kedge-UID/PORT.token, a file
// of mode 600 in a folder of mode 700. Independent of HTTP.
#include <cstdint>
#include <optional>
#include <string>

namespace kedge {

// The file exists as long as the object; one left by a killed server is replaced.
class LocalToken {
 public:
  // A UsageError if the folder is another user's or accessible to others.
  LocalToken(int64_t port, const std::string& token);
  ~LocalToken();
  LocalToken(const LocalToken&) = delete;
  LocalToken& operator=(const LocalToken&) = delete;

  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_, token_;
};

// Of the server at this address: none if that is not this machine, there is no such file, others can access it, or another user
// listens on the port.
[[nodiscard]] std::optional<std::string> find_local_token(const std::string& host, int64_t port);

// May a token be sent to the process that listens on this loopback port? Not if it is another user's, except root's.
[[nodiscard]] bool is_port_ours(int64_t port);

}  // namespace kedge
