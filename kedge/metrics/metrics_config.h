#pragma once
// Which sinks a run has, and where they write: the metrics section of a run's configuration.
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

struct MetricsConfig {
  bool console = true;
  std::vector<std::string> console_keys;
  int64_t console_numbers = 4;
  double console_line_s = 5;
  bool jsonl = true;
  bool create_tensorboard_logger = true;

  void fields(auto&& field) {
    field("console", console, "progress bar on a terminal, plain lines elsewhere");
    field("console_keys", console_keys, "metrics shown on the console, by full name; empty: the first ones logged");
    field("console_numbers", console_numbers, "maximum number of metrics on the console", at_least(0));
    field("console_line_s", console_line_s, "time between plain lines", at_least(0), unit("s"));
    field("jsonl", jsonl, "write metrics.jsonl and samples.jsonl into the run's folder");
    field("create_tensorboard_logger", create_tensorboard_logger, "write TensorBoard event files into the run's folder");
    field.refused("create_wandb_logger", "W&B is not written directly; sync the TensorBoard events with: wandb sync FOLDER",
                  {"false", "False"});
    field.ignored("wandb_logger_kwargs", "W&B is not written directly");
  }
};

// `writes` on the one rank that logs; elsewhere no file is opened. The folder must exist.
[[nodiscard]] MetricsLog make_metrics_log(const MetricsConfig& config, const Path& folder, bool writes);

}  // namespace kedge
