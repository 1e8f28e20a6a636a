#pragma once
// Which sinks a run has, and where they write: the metrics section of a run's configuration.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"
#include "kedge/metrics/metric_names.h"
#include "kedge/metrics/metrics.h"
#include "kedge/metrics/trackers/tracker_config.h"

namespace kedge {

struct MetricsConfig {
  bool console = true;
  std::vector<std::string> console_keys;
  int64_t console_numbers = 4;
  double console_line_s = 5;
  bool jsonl = true;
  bool create_tensorboard_logger = true;
  bool create_mlflow_logger = false, create_wandb_logger = false;
  std::optional<MlflowConfig> mlflow_logger_kwargs;
  std::optional<WandbConfig> wandb_logger_kwargs;
  double tracker_wait_s = 30;
  MetricNames metric_names = MetricNames::kedge;

  void fields(auto&& field) {
    field("console", console, "progress bar on a terminal, plain lines elsewhere");
    field("console_keys", console_keys, "metrics shown on the console, by full name; empty: the first ones logged");
    field("console_numbers", console_numbers, "maximum number of metrics on the console", at_least(0));
    field("console_line_s", console_line_s, "time between plain lines", at_least(0), unit("s"));
    field("jsonl", jsonl, "write metrics.jsonl and samples.jsonl into the run's folder");
    field("create_tensorboard_logger", create_tensorboard_logger, "write TensorBoard event files into the run's folder");
    field("create_mlflow_logger", create_mlflow_logger, "send metrics to an MLflow server");
    field("mlflow_logger_kwargs", mlflow_logger_kwargs, "the MLflow server and run");
    field("create_wandb_logger", create_wandb_logger, "send metrics to Weights & Biases, with your own Python's wandb package");
    field("wandb_logger_kwargs", wandb_logger_kwargs, "the W&B run");
    field("tracker_wait_s", tracker_wait_s, "how long the end of a run waits for each of MLflow and W&B; kedge track sends the rest",
          at_least(0), unit("s"));
    field("metric_names", metric_names, "trl, verl: metrics that they log too are also written under their names (docs/metrics.md)");
  }
};

// UsageError for a tracker that cannot work: no address, no wandb package, no metrics.jsonl. For the rank that writes, before the run.
void check_trackers(const MetricsConfig& config);

// Those that are on.
class Tracker;
[[nodiscard]] std::vector<std::unique_ptr<Tracker>> make_trackers(const MetricsConfig& config, const Path& folder);

// `writes` on the one rank that logs; elsewhere no file is opened. The folder must exist.
[[nodiscard]] MetricsLog make_metrics_log(const MetricsConfig& config, const Path& folder, bool writes);

}  // namespace kedge
