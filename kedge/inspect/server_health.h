#pragma once
// The servers that a run's settings name (rewards, the critic), and their state, queried over HTTP: /v2/health/ready and /metrics.
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/core/serial_worker.h"
#include "kedge/inspect/server_numbers.h"

namespace kedge {

struct RunServer {
  std::string label;  // "critic", "reward server judge"
  std::string host = {};
  int64_t port = 0;
  std::optional<Path> token_file = {};  // the token it requires

  [[nodiscard]] std::string address() const;  // "localhost:5555"
};

// Those that the run calls, or the server that it is. Settings not in a run's format name none. `started_in`: what paths are relative to.
[[nodiscard]] std::vector<RunServer> servers_of(const Json& settings, std::string_view algorithm, const Path& started_in);

// Why a server in the settings of this run must not be queried; empty: it may be. Settings may have been written by anyone:
// by default only those of this user's own runs count, and only this machine is queried.
[[nodiscard]] std::string why_not_ask(const RunServer& server, const Path& run_folder, bool asks_other_machines);

struct ServerHealth {
  enum class State { unknown, ready, not_ready, refuses, away };
  State state = State::unknown;
  std::string text = "not asked yet";  // for people
  std::vector<ServerNumber> numbers = {};
};
[[nodiscard]] std::string_view name_of(ServerHealth::State state);  // "not ready"

// Queries now; waits a few seconds at most.
[[nodiscard]] ServerHealth ask_server(const RunServer& server);

// Caches the state of servers, and queries again on its own thread if it is older than `period`. Never waits. Thread-safe.
class HealthPoller {
 public:
  explicit HealthPoller(std::chrono::milliseconds period = std::chrono::seconds(4)) : period_(period) {}

  [[nodiscard]] ServerHealth look(const RunServer& server);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    ServerHealth health = {};
    std::optional<Clock::time_point> asked = {};
    bool is_asking = false;
  };

  std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by address
  SerialWorker worker_;                   // last: it uses the others
};

}  // namespace kedge
