#pragma once
// Counters of a server's models, as Triton's statistics and as Prometheus text. Thread-safe.
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

struct ModelStats {
  explicit ModelStats(std::string model_name) : name(std::move(model_name)) {}

  std::string name;
  std::atomic<int64_t> num_done = 0, num_refused = 0, num_failed = 0, num_dropped = 0;  // calls: answered, bad, broken, left by their peers
  std::atomic<int64_t> num_rows = 0, num_batches = 0;                                   // of what was run
  std::atomic<int64_t> wait_ns = 0, compute_ns = 0;                                     // of calls in the queue; of batches
};

[[nodiscard]] Json stats_json(std::span<const ModelStats* const> models);

// Of the process: name and value, "kedge_connections".
using Gauges = std::vector<std::pair<std::string, double>>;
[[nodiscard]] std::string prometheus_text(std::span<const ModelStats* const> models, const Gauges& gauges);

}  // namespace kedge
