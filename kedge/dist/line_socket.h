#pragma once
// Short lines of text over TCP. Calls without a time limit do not wait: what cannot be sent now is sent later. Independent of what the
// lines mean.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] int number() const { return number_; }  // -1: none

 private:
  int number_;
};

class LineSocket {
 public:
  explicit LineSocket(FileDescriptor connected) : socket_(std::move(connected)) {}

  [[nodiscard]] int fd() const { return socket_.number(); }
  [[nodiscard]] bool is_open() const { return fd() >= 0; }  // false once receive() has found the end of the connection

  void send(std::string_view line);
  void flush();  // sends what was not sent yet, as far as the connection takes it
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }

  // The lines that have arrived. The connection is closed where it ends and where the other side sends something that is too long.
  std::vector<std::string> receive();
  // The next line, if one arrives within the limit.
  std::optional<std::string> wait_for_line(std::chrono::milliseconds limit);
  void close() { socket_ = FileDescriptor(); }

 private:
  void read();
  std::optional<std::string> take_line();

  FileDescriptor socket_;
  std::string unread_, unsent_;
};

// `address` is in digits. Throws an Error when nobody answers within the limit.
[[nodiscard]] LineSocket connect_line(const std::string& address, int port, std::chrono::milliseconds limit);

// Listens on a port that the system chooses: on all addresses of this machine, or only for processes of the machine.
class LineListener {
 public:
  enum class Reach { machine, network };
  explicit LineListener(Reach reach);

  [[nodiscard]] int fd() const { return socket_.number(); }
  [[nodiscard]] bool is_open() const { return fd() >= 0; }
  [[nodiscard]] int port() const { return port_; }
  std::optional<LineSocket> accept();  // none if nobody waits to be connected
  void close() { socket_ = FileDescriptor(); }

 private:
  FileDescriptor socket_;
  int port_ = 0;
};

// Addresses, in digits, at which other machines may reach this one.
[[nodiscard]] std::vector<std::string> own_addresses();

}  // namespace kedge
