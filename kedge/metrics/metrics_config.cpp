#include "kedge/metrics/metrics_config.h"

#include "kedge/core/error.h"
#include "kedge/metrics/console.h"
#include "kedge/metrics/jsonl.h"
#include "kedge/metrics/tensorboard.h"
#include "kedge/metrics/trackers/mlflow.h"
#include "kedge/metrics/trackers/tracker.h"
#include "kedge/metrics/trackers/wandb.h"

namespace kedge {

void check_trackers(const MetricsConfig& config) {
  if (!config.create_mlflow_logger && !config.create_wandb_logger) return;
  check(config.jsonl,
        "exp_manager.jsonl: must be true with create_mlflow_logger or create_wandb_logger, which send what metrics.jsonl has");
  if (config.create_mlflow_logger) static_cast<void>(mlflow_address(config.mlflow_logger_kwargs.value_or(MlflowConfig{})));
  if (config.create_wandb_logger) check_wandb(config.wandb_logger_kwargs.value_or(WandbConfig{}));
}

std::vector<std::unique_ptr<Tracker>> make_trackers(const MetricsConfig& config, const Path& folder) {
  std::vector<std::unique_ptr<Tracker>> trackers;
  const auto add = [&](const char* file_name, std::unique_ptr<TrackerLink> link) {
    trackers.push_back(std::make_unique<Tracker>(TrackerOptions{.file_name = file_name, .folder = folder, .wait_s = config.tracker_wait_s},
                                                 std::move(link)));
  };
  if (config.create_mlflow_logger)
    add("mlflow.json", std::make_unique<MlflowLink>(config.mlflow_logger_kwargs.value_or(MlflowConfig{}), folder));
  if (config.create_wandb_logger)
    add("wandb.json", std::make_unique<WandbLink>(config.wandb_logger_kwargs.value_or(WandbConfig{}), folder));
  return trackers;
}

MetricsLog make_metrics_log(const MetricsConfig& config, const Path& folder, bool writes) {
  MetricsLog::MoreNames more_names;
  if (config.metric_names != MetricNames::kedge)
    more_names = [names = config.metric_names](const Metrics& metrics) { return as_known_elsewhere(metrics, names); };
  MetricsLog log(writes, std::move(more_names));
  if (config.console) {
    log.add<ConsoleSink>(ConsoleOptions{
        .keys = config.console_keys, .max_numbers = static_cast<size_t>(config.console_numbers), .line_s = config.console_line_s});
  }
  if (writes)  // before JsonlSink, as they want to be
    for (std::unique_ptr<Tracker>& tracker : make_trackers(config, folder)) log.add<TrackerSink>(std::move(tracker));
  if (config.jsonl) log.add<JsonlSink>(folder);
  if (config.create_tensorboard_logger) log.add<TensorBoardSink>(folder);
  return log;
}

}  // namespace kedge
