#include "kedge/dist/line_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxUnreadBytes = 16384;                          // several lines, none of them long
constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;  // a program that this one starts must not keep a connection alive

bool wait_for(int fd, int16_t events, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

void send_at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

template <typename Address>
const sockaddr* as_any(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

FileDescriptor bound_to_ip4(uint32_t address) {
  FileDescriptor fd(::socket(AF_INET, kKind, 0));
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(address);
  return ::bind(fd.number(), as_any(local), sizeof local) == 0 ? std::move(fd) : FileDescriptor();
}

// Every address of the machine, also those of IPv4.
FileDescriptor bound_to_all() {
  FileDescriptor fd(::socket(AF_INET6, kKind, 0));
  const int no = 0;
  sockaddr_in6 local{};
  local.sin6_family = AF_INET6;
  local.sin6_addr = in6addr_any;
  const bool is_bound =
      ::setsockopt(fd.number(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0 && ::bind(fd.number(), as_any(local), sizeof local) == 0;
  return is_bound ? std::move(fd) : bound_to_ip4(INADDR_ANY);
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  else
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  return text.data();
}

bool is_reachable(const ifaddrs& one) {
  if (one.ifa_addr == nullptr || (one.ifa_flags & IFF_UP) == 0 || (one.ifa_flags & IFF_LOOPBACK) != 0) return false;
  if (one.ifa_addr->sa_family == AF_INET) return true;
  return one.ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr);
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

void LineSocket::send(std::string_view line) {
  unsent_ += line;
  unsent_ += '\n';
  flush();
}

void LineSocket::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // A broken connection may still hold lines to be read, the last of which says why: receive() closes it.
    unsent_.erase(0, count < 0 ? unsent_.size() : static_cast<size_t>(count));
  }
}

void LineSocket::read() {
  std::array<char, 4096> buffer{};
  while (is_open()) {
    const ssize_t count = ::recv(fd(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) return close();
    unread_.append(buffer.data(), static_cast<size_t>(count));
    if (static_cast<size_t>(count) < buffer.size()) return;  // the rest, if any, at the next call
    if (unread_.size() > kMaxUnreadBytes) return;
  }
}

std::optional<std::string> LineSocket::take_line() {
  const size_t end = unread_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::vector<std::string> LineSocket::receive() {
  read();
  std::vector<std::string> lines;
  while (std::optional<std::string> line = take_line()) lines.push_back(std::move(*line));
  if (unread_.size() > kMaxUnreadBytes) close();
  return lines;
}

std::optional<std::string> LineSocket::wait_for_line(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (true) {
    if (std::optional<std::string> line = take_line()) return line;
    if (!is_open() || unread_.size() > kMaxUnreadBytes || !wait_for(fd(), POLLIN, end)) return std::nullopt;
    read();
  }
}

LineSocket connect_line(const std::string& address, int port, std::chrono::milliseconds limit) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) throw Error(str(address, ": ", ::gai_strerror(code)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> target(found, ::freeaddrinfo);

  FileDescriptor fd(::socket(target->ai_family, kKind, 0));
  int error = ::connect(fd.number(), target->ai_addr, target->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait_for(fd.number(), POLLOUT, Clock::now() + limit))
      error = ETIMEDOUT;
    else
      ::getsockopt(fd.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) throw Error(str(address, " port ", port, ": ", std::strerror(error)));
  send_at_once(fd.number());
  return LineSocket(std::move(fd));
}

LineListener::LineListener(Reach reach) : socket_(reach == Reach::machine ? bound_to_ip4(INADDR_LOOPBACK) : bound_to_all()) {
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (fd() < 0 || ::listen(fd(), SOMAXCONN) != 0 || ::getsockname(fd(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    throw Error(str("cannot listen on a TCP port: ", std::strerror(errno)));
  const in_port_t port =
      local.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(local).sin_port : reinterpret_cast<sockaddr_in6&>(local).sin6_port;
  port_ = ntohs(port);
}

std::optional<LineSocket> LineListener::accept() {
  FileDescriptor fd(::accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.number() < 0) return std::nullopt;
  send_at_once(fd.number());
  return LineSocket(std::move(fd));
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, ::freeifaddrs);
  std::vector<std::string> addresses;
  for (const sa_family_t family : {sa_family_t{AF_INET}, sa_family_t{AF_INET6}})
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
      if (is_reachable(*one) && one->ifa_addr->sa_family == family) addresses.push_back(address_text(one->ifa_addr));
  return addresses;
}

}  // namespace kedge
