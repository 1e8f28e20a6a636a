#pragma once
// What the dashboard answers to requests: its page, and the runs as JSON. No sockets: a request in, a response out. Reads runs, writes
// nothing.
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kedge/net/http.h"

#include "cli/dashboard_runs.h"
#include "cli/server_health.h"

namespace kedge::cli {

// Thread-safe.
class DashboardApi {
 public:
  // The folders as DashboardRuns takes them.
  explicit DashboardApi(const std::vector<std::string>& folders);

  // Refused: any method but GET and HEAD (405), and a Host that is neither an address of this machine nor localhost (403), as a page
  // elsewhere would have it that makes a browser ask us under its own name. Else none.
  [[nodiscard]] static std::optional<HttpResponse> refusal(const HttpRequest& request);

  [[nodiscard]] HttpResponse answer(const HttpRequest& request);

  [[nodiscard]] size_t num_runs();

 private:
  [[nodiscard]] Json json_for(const std::string& what, const std::string& target);
  void refresh();

  std::mutex mutex_;  // of the runs
  DashboardRuns runs_;
  std::chrono::steady_clock::time_point refreshed_;
  HealthDesk health_;
};

// Is this the value of a Host header that our own page has? An address in digits, localhost, or this machine's name; any port.
[[nodiscard]] bool is_own_host(std::string_view host);

}  // namespace kedge::cli
