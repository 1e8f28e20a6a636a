#include "kedge/metrics/metrics_config.h"

#include "kedge/metrics/console.h"
#include "kedge/metrics/jsonl.h"
#include "kedge/metrics/tensorboard.h"

namespace kedge {

MetricsLog make_metrics_log(const MetricsConfig& config, const Path& folder, bool writes) {
  MetricsLog log(writes);
  if (config.console) {
    log.add<ConsoleSink>(ConsoleOptions{
        .keys = config.console_keys, .max_numbers = static_cast<size_t>(config.console_numbers), .line_s = config.console_line_s});
  }
  if (config.jsonl) log.add<JsonlSink>(folder);
  if (config.create_tensorboard_logger) log.add<TensorBoardSink>(folder);
  return log;
}

}  // namespace kedge
