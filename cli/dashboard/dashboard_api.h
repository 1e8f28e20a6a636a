#pragma once
// The dashboard's responses: its page, and the runs as JSON. Without sockets: a request in, a response out. Reads runs, writes
// nothing.
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kedge/inspect/server_health.h"
#include "kedge/net/http.h"

#include "cli/dashboard/dashboard_runs.h"

namespace kedge::cli {

// Thread-safe.
class DashboardApi {
 public:
  // The folders as DashboardRuns takes them. With a token, requests must contain it: in the address of the page (?token=), in the cookie
  // of that response, or as a bearer token.
  explicit DashboardApi(const std::vector<std::string>& folders, std::optional<std::string> token = {}, bool asks_other_machines = false);

  // Refused: any method but GET and HEAD (405), a Host that is neither an address of this machine nor localhost (403), as in a DNS
  // rebinding attack, and requests without the token (401). Else none.
  [[nodiscard]] std::optional<HttpResponse> refusal(const HttpRequest& request) const;

  [[nodiscard]] HttpResponse answer(const HttpRequest& request);

  [[nodiscard]] size_t num_runs();

 private:
  [[nodiscard]] Json json_for(const std::string& what, const std::string& target);
  [[nodiscard]] HttpResponse answer_known(const HttpRequest& request);
  [[nodiscard]] bool is_known(const HttpRequest& request) const;
  void refresh();

  std::optional<std::string> token_;
  bool asks_other_machines_;

  std::mutex mutex_;  // of the runs
  DashboardRuns runs_;
  std::chrono::steady_clock::time_point refreshed_;
  HealthPoller health_;
};

}  // namespace kedge::cli
