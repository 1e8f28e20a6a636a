#pragma once
// One connection to an HTTP server, kept between calls. Blocking. Without retries; independent of models.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kedge/core/error.h"
#include "kedge/net/http.h"

namespace kedge {

// The server could not be reached, or the connection was lost.
class ConnectionError : public Error {
 public:
  ConnectionError(const std::string& text, bool sent) : Error(text), sent_(sent) {}
  // May the server have received the request? False: certainly not.
  [[nodiscard]] bool sent() const { return sent_; }

 private:
  bool sent_;
};

struct HttpTimes {
  std::chrono::milliseconds connect = std::chrono::seconds(10);
  std::chrono::milliseconds stall = std::chrono::seconds(60);  // for every MiB that is sent or read once the answer has begun
  std::optional<std::chrono::milliseconds> answer = {};        // until the answer begins; none: for ever
};

// One call at a time; abort() may come from any thread.
class HttpConnection {
 public:
  HttpConnection(std::string host, int64_t port);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Content-Length and Host are added. Throws ConnectionError; any status is an answer.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const HttpTimes& times = {});

  // The current call fails at once.
  void abort();
  // Is it open from a call before? Such a connection may have been closed by the server meanwhile.
  [[nodiscard]] bool is_open() const;
  void close();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kedge
