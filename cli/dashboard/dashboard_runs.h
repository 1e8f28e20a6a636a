#pragma once
// The runs that a dashboard shows: found, followed while they run, and described in JSON. Reads only. Independent of HTTP.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/inspect/metric_series.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/inspect/run_overview.h"

namespace kedge::cli {

// One run. What it cannot read is in `trouble`, and retried. Not thread-safe.
class DashboardRun {
 public:
  DashboardRun(int64_t id, Path folder);

  void update();

  [[nodiscard]] int64_t id() const { return id_; }
  [[nodiscard]] const Path& folder() const { return folder_; }
  [[nodiscard]] const MetricsFeed& feed() const { return feed_; }
  [[nodiscard]] const Json& settings() const { return settings_; }  // config.yaml; null if it could not be read
  [[nodiscard]] const RunOnDisk& on_disk() const { return on_disk_; }

  // Status, progress, the main metrics, the number of records.
  [[nodiscard]] Json summary() const;
  // Where it might have gone wrong: hints from the metrics, warnings of its log, lines that could not be read.
  [[nodiscard]] Json notes() const;

  std::string name;  // short, and no other run's

 private:
  void read_start();
  void read_log_end();
  [[nodiscard]] Json tiles() const;
  [[nodiscard]] std::optional<double> seconds_left() const;

  int64_t id_;
  Path folder_;
  MetricsFeed feed_;
  std::optional<std::filesystem::file_time_type> start_time_;  // of run.json when it was read
  RunOnDisk on_disk_;
  Json settings_;
  RunEnd end_;
  int64_t numbers_version_ = -1;  // of the feed, from which these are
  RunNumbers numbers_;
  Json tiles_ = Json::Array();
  std::optional<std::filesystem::file_time_type> log_time_;
  bool has_error_ = false;
  std::string trouble_;
};

// All of them, with fixed numbers. Not thread-safe.
class DashboardRuns {
 public:
  // Each a run's folder, or one with runs below it, which is scanned for new ones regularly. UsageError for one that is neither.
  explicit DashboardRuns(const std::vector<std::string>& folders);

  void update();

  [[nodiscard]] const std::vector<std::unique_ptr<DashboardRun>>& all() const { return runs_; }
  [[nodiscard]] const DashboardRun* find(int64_t id) const;

 private:
  void find_new();
  void name_all();

  std::vector<Path> roots_;  // folders with runs below
  std::vector<std::unique_ptr<DashboardRun>> runs_;
};

// Folders of runs in a folder, or up to two levels below it (EXP_DIR/NAME/VERSION, quickstart/rs/aligned/actor), by name.
[[nodiscard]] std::vector<Path> runs_below(const Path& folder);

}  // namespace kedge::cli
