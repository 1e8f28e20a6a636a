#pragma once
// The metrics of a kedge server from its /metrics. Independent of HTTP.
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

struct ServerNumber {
  std::string name, labels;  // "kedge_rows_total", "model=\"reward_model\""
  double value = 0;

  friend bool operator==(const ServerNumber&, const ServerNumber&) = default;
};
// The lines of a Prometheus text that begin with kedge_, at most 256; others are skipped.
[[nodiscard]] std::vector<ServerNumber> read_server_numbers(std::string_view text);

}  // namespace kedge
