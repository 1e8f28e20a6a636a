#pragma once
// Where an MLflow server is, how one shows who one is to it, and what names it takes. Knows no requests.
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/metrics/trackers/tracker_config.h"

namespace kedge {

struct MlflowAddress {
  std::string host;
  int64_t port = 80;
  std::string path;  // before /api: "" or "/mlflow"
};
// Of the key or the variable MLFLOW_TRACKING_URI. UsageError for none, and for what is no http:// address: says what to do instead.
[[nodiscard]] MlflowAddress mlflow_address(const MlflowConfig& config);

// As MLflow takes it: a character that may not stand in a metric's name is an underscore.
[[nodiscard]] std::string mlflow_name(std::string_view name);

// The value of an Authorization header as MLflow's own client would send it, by MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD; empty:
// none.
[[nodiscard]] std::string mlflow_authorization();

}  // namespace kedge
