#pragma once
// A TCP peer of a server that sends whatever bytes a test wants and reads whatever comes back.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

class RawPeer {
 public:
  explicit RawPeer(int64_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    // Where nobody listens, the system may by chance give this end the very port it calls: then it is connected to itself.
    sockaddr_in own{};
    socklen_t size = sizeof own;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    if (own.sin_port == address.sin_port) connected_ = false;
  }
  ~RawPeer() { close(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  // False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // What comes until the text ends with `end`, the server closes, or so much time has passed without a byte.
  std::string read_until(std::string_view end, int limit_ms = 10000) {
    std::string text;
    while (end.empty() || text.find(end) == std::string::npos) {
      pollfd wait{socket_, POLLIN, 0};
      if (poll(&wait, 1, limit_ms) <= 0) break;
      char bytes[4096];
      const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) {
        closed_ = true;
        break;
      }
      text.append(bytes, static_cast<size_t>(count));
    }
    return text;
  }
  std::string read_all(int limit_ms = 10000) { return read_until("", limit_ms); }

  // Has the server closed the connection, as far as was read?
  [[nodiscard]] bool closed() const { return closed_; }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  bool connected_ = false, closed_ = false;
};

}  // namespace kedge
