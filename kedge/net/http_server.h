#pragma once
// Serves HTTP/1.1 over TCP: persistent connections, limits of sizes and times, responses that may take hours. Independent of models.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kedge/net/http.h"

namespace kedge {

struct HttpServerOptions {
  std::string ip = "127.0.0.1";
  int64_t port = 0;  // 0: any free port
  int64_t max_connections = 1024;
  int64_t max_strangers = 256;  // connections that have made no request yet that the gate let in
  int64_t max_header_bytes = 64 << 10;
  int64_t max_body_bytes = int64_t{1} << 30;
  int64_t max_held_bytes = int64_t{4} << 30;  // of all pending requests; one more gets 503
  // A silent peer may stay `idle_time`, an unauthenticated one `stranger_time` in total. One that has begun a request must finish its
  // header in `header_time`, and every MiB of its body, as every MiB of an answer that it reads, in `stall_time`. Nothing limits how long
  // an answer may take.
  std::chrono::milliseconds idle_time = std::chrono::minutes(10), header_time = std::chrono::seconds(20),
                            stall_time = std::chrono::seconds(60), stranger_time = std::chrono::seconds(20);
  int num_threads = 2;  // that read, write and call the handler
};

// An Error, as HttpServer's, if it cannot listen on an address. Nobody can connect meanwhile.
void check_listening(const HttpServerOptions& options);

// The response channel of one request. Copies share it. Thread-safe. If all copies are destroyed without a response, it is 500. The
// server must outlive them.
class HttpReply {
 public:
  class Place;
  explicit HttpReply(std::shared_ptr<Place> place) : place_(std::move(place)) {}

  void send(HttpResponse response) const;  // the first one counts
  [[nodiscard]] bool is_gone() const;      // has the peer closed the connection?
  // Counts this many more bytes as held for this request, until it is answered. A RequestError (503) if the limit is exceeded.
  void hold(int64_t bytes) const;

 private:
  std::shared_ptr<Place> place_;
};

// Called on the server's threads, also at the same time for different connections. A RequestError becomes its answer, any other
// exception 500.
using HttpHandler = std::function<void(HttpRequest request, HttpReply reply)>;
// Sees a request before its body is read; an answer refuses it, and nothing more is read from that peer.
using HttpGate = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;

class HttpServer {
 public:
  // Listens when it returns. An Error names the address that cannot be listened on.
  HttpServer(const HttpServerOptions& options, HttpHandler handler, HttpGate gate = {});
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int64_t port() const;
  [[nodiscard]] int64_t num_connections() const;
  [[nodiscard]] int64_t num_refused() const;  // because of the limit

  // No new connections, no new requests; answers that are sent within `time` still go out. Waits for that.
  void stop(std::chrono::milliseconds time = std::chrono::seconds(5));

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace kedge
