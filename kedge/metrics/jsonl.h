#pragma once
// A run's metrics and samples as JSON lines, for jq, scripts and the dashboard. Independent of what the names mean.
#include <cstdint>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/metrics/jsonl_log.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

// FOLDER/metrics.jsonl: {"step": 3, "time": 1700000000.25, "train_optim/loss": 0.5, ...}, one line per write.
// FOLDER/samples.jsonl: {"step": 3, "time": ..., "table": "train_rollouts", "prompt": ..., "response": ..., "reward": 1.5, ...}.
// NaN and infinities, which JSON lacks, are the strings "NaN", "Infinity" and "-Infinity".
class JsonlSink final : public Sink {
 public:
  explicit JsonlSink(const Path& folder, WallClock clock = seconds_since_epoch);

  void write(int64_t step, const Metrics& metrics) override;
  void write_samples(int64_t step, const SampleTable& table) override;
  void flush() override;
  void record(SinkPositions& positions) const override;
  // Truncates to the recorded offset; if none was recorded, to the first line of `step` or a later one. The same, with a warning, if
  // the file was changed since: changed metrics files do not prevent a resume.
  void resume(int64_t step, const SinkPositions& positions) override;

 private:
  WallClock clock_;
  JsonlLog metrics_;
  JsonlLog samples_;
};

struct MetricsLine {
  int64_t step;
  double time;
  Metrics metrics;
};

// Where a JsonlSink that is resumed cuts its file back to.
[[nodiscard]] int64_t resume_offset(const Path& file, int64_t step, const SinkPositions& positions);

// A number as a JsonlSink writes it: NaN and infinities are strings.
[[nodiscard]] Json metric_json(double value);
// The same back. UsageError for anything else: "WHERE: ...".
[[nodiscard]] double read_metric(const Json& value, std::string_view where);

}  // namespace kedge
