#pragma once
// Where an MLflow server is, how to authenticate to it, and which metric names it accepts. Independent of requests.
#include <string>
#include <string_view>

#include "kedge/metrics/trackers/tracker_config.h"
#include "kedge/net/http.h"

namespace kedge {

// From the key, or from the variable MLFLOW_TRACKING_URI; the target is the path before /api, "" or "/mlflow". If neither is set, or it is
// not an http:// address: a UsageError that says what to do.
[[nodiscard]] HttpAddress mlflow_address(const MlflowConfig& config);

// A metric name that MLflow accepts: other characters become underscores.
[[nodiscard]] std::string mlflow_name(std::string_view name);

// The Authorization header that MLflow's own client would send: from MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
// MLFLOW_TRACKING_PASSWORD. Empty: none.
[[nodiscard]] std::string mlflow_authorization();

}  // namespace kedge
