#include "kedge/metrics/metrics_config.h"

#include <gtest/gtest.h>

#include "kedge/config/config.h"
#include "kedge/metrics/jsonl.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

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

TEST(MetricsConfig, OtherRanksOpenNothing) {
  const testing::TempFolder folder;
  MetricsLog log = make_metrics_log({}, folder.path(), false);
  log.write(3, {{"loss", 0.5}});
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(MetricsConfig, SaysHowToReachWeightsAndBiases) {
  MetricsConfig config;
  EXPECT_EQ(
      testing::error_of([&] { load_config(describe(config), std::nullopt, {"++create_wandb_logger=True"}); }),
      "command line: create_wandb_logger: W&B is not written directly; sync the TensorBoard events with: wandb sync FOLDER (found True)");
  load_config(describe(config), std::nullopt, {"++create_wandb_logger=False"});
}

}  // namespace
}  // namespace kedge
