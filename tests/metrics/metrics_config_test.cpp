#include "kedge/metrics/metrics_config.h"

#include <gtest/gtest.h>

#include "kedge/config/config.h"
#include "kedge/metrics/jsonl.h"

#include "tests/support/expect_error.h"
#include "tests/support/read_metrics.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::read_metrics;

size_t files_in(const Path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(MetricsConfig, ChoosesTheSinks) {
  const testing::TempFolder folder;
  MetricsConfig config;
  load_config(describe(config), std::nullopt, {"console=false"});
  MetricsLog log = make_metrics_log(config, folder.path(), true);
  log.write(3, {{"loss", 0.5}});
  log.flush();
  EXPECT_EQ(read_metrics(folder / "metrics.jsonl").at(0).metrics.find("loss"), 0.5);
  EXPECT_EQ(files_in(folder.path()), 3U);  // metrics.jsonl, samples.jsonl, one event file
}

TEST(MetricsConfig, WritesNamesOfOthersInTheSameLine) {
  const testing::TempFolder folder;
  MetricsConfig config;
  load_config(describe(config), std::nullopt, {"console=false", "metric_names=trl"});
  MetricsLog log = make_metrics_log(config, folder.path(), true);
  log.write(3, {{"train_rollouts/rewards", 0.5}, {"other", 1}});
  log.flush();
  const auto lines = read_metrics(folder / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].metrics.find("train_rollouts/rewards"), 0.5);
  EXPECT_EQ(lines[0].metrics.find("reward"), 0.5);
  EXPECT_EQ(lines[0].metrics.size(), 3U);
}

TEST(MetricsConfig, OtherRanksOpenNothing) {
  const testing::TempFolder folder;
  MetricsLog log = make_metrics_log({}, folder.path(), false);
  log.write(3, {{"loss", 0.5}});
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(MetricsConfig, ReadsTheReferencesTrackerKeys) {
  MetricsConfig config;
  const auto load = [&](const std::string& yaml) { return load_section(describe(config), {"a.yaml", yaml}, {}); };
  EXPECT_TRUE(load("create_wandb_logger: False\nwandb_logger_kwargs: {project: null, name: null}").empty());
  EXPECT_TRUE(
      load("create_wandb_logger: True\nwandb_logger_kwargs: {project: p, name: n, version: v}\nmlflow_logger_kwargs: null").empty());
  EXPECT_EQ(config.wandb_logger_kwargs->id, "v");
  EXPECT_EQ(load("wandb_logger_kwargs: {resume: true}").size(), 1U);
  EXPECT_NE(testing::error_of([&] { return load("mlflow_logger_kwargs: {log_model: true}"); }).find("checkpoints are not uploaded"),
            std::string::npos);
}

TEST(MetricsConfig, TrackersThatCannotWorkAreRefusedBeforeTheRun) {
  const testing::ScopedVariable variable("MLFLOW_TRACKING_URI", std::nullopt);
  MetricsConfig config;
  check_trackers(config);
  config.create_mlflow_logger = true;
  EXPECT_NE(testing::error_of([&] { check_trackers(config); }).find("tracking_uri: create_mlflow_logger requires the address"),
            std::string::npos);
  config.mlflow_logger_kwargs.emplace().tracking_uri = "http://localhost:5000";
  check_trackers(config);
  config.jsonl = false;
  EXPECT_NE(testing::error_of([&] { check_trackers(config); }).find("exp_manager.jsonl: must be true"), std::string::npos);
  config.jsonl = true;
  config.create_wandb_logger = true;
  config.wandb_logger_kwargs.emplace().python = "/no/python";
  EXPECT_NE(testing::error_of([&] { check_trackers(config); }).find("cannot start /no/python"), std::string::npos);
}

}  // namespace
}  // namespace kedge
