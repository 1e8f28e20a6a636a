#pragma once
// Distributes work items, each once, over callers: PUT /get_idx with {"batch_size": n} is answered by a list of up to n numbers, which
// is empty when nothing is left. Independent of the meaning of the numbers.
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kedge/net/http_server.h"

namespace kedge {

// Thread-safe. Serves from its construction on.
class WorkBalancer {
 public:
  // Callers must send the token.
  WorkBalancer(HttpServerOptions options, std::string token);

  // Replaces the work items, in this order; remaining ones are dropped.
  void fill(std::vector<int64_t> indices);
  [[nodiscard]] std::vector<int64_t> take(int64_t at_most);
  [[nodiscard]] int64_t port() const { return server_->port(); }

 private:
  void handle(const HttpRequest& request, const HttpReply& reply);

  std::string token_;
  std::mutex mutex_;
  std::deque<int64_t> left_;
  std::unique_ptr<HttpServer> server_;  // last: its threads use the rest
};

struct WorkAddress {
  std::string host;
  int64_t port = 0;
  std::string token;
};
// A rank's side of it: one call. An Error that names the address.
[[nodiscard]] std::vector<int64_t> ask_for_work(const WorkAddress& address, int64_t at_most);

}  // namespace kedge
