#pragma once
// What the servers of kedge serve have in common.
#include <chrono>
#include <functional>
#include <vector>

#include "kedge/net/model_server.h"
#include "kedge/run/device_setup.h"

#include "cli/arguments.h"

namespace kedge::cli {

// Of a plan, which is one process, for itself or for the ranks that it imagines.
[[nodiscard]] Mesh open_plan_mesh(const ComputeConfig& compute, const std::optional<PlannedRanks>& planned);
// An Error if the address cannot be listened on; it names the key that sets another port, of this section.
void check_server_address(const ServerConfig& config, std::string_view section);

struct ServerParts {
  const ServerConfig& config;
  std::vector<ServedModel> models;
  at::Device device;                            // device of the models
  std::chrono::steady_clock::time_point begin;  // of the program's work, to say how long it took
};

// Of ranks above 0, which only rank 0 stops: signals that reach all ranks of a job are left to it. Ends when `work` does.
int follow_until_told(const std::function<void()>& work);

// Serves until SIGINT, SIGTERM or SIGUSR1; logs how to reach the models and how to stop. Returns the exit code.
int serve_until_told(ServerParts parts);

// kedge serve critic.
int serve_critic(const Arguments& arguments);

}  // namespace kedge::cli
