#include "kedge/net/server_stats.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

void fill(ModelStats& stats) {
  stats.num_done = 3;
  stats.num_refused = 1;
  stats.num_failed = 2;
  stats.num_rows = 12;
  stats.num_batches = 2;
  stats.wait_ns = 500;
  stats.compute_ns = 1500000000;
}

TEST(ServerStats, AreToldAsTritonDoes) {
  ModelStats stats("m");
  fill(stats);
  const std::vector<const ModelStats*> all = {&stats};
  EXPECT_EQ(stats_json(all).dump_compact(),
            R"({"model_stats":[{"name":"m","version":"1","inference_count":12,"execution_count":2,"inference_stats":{)"
            R"("success":{"count":3,"ns":1500000500},"fail":{"count":3,"ns":0},"cancel":{"count":0,"ns":0},)"
            R"("queue":{"count":3,"ns":500},"compute_infer":{"count":2,"ns":1500000000}}}]})");
}

TEST(ServerStats, AreToldAsPrometheusWants) {
  ModelStats stats("m");
  fill(stats);
  const std::vector<const ModelStats*> all = {&stats};
  const std::string text = prometheus_text(all, {{"kedge_queue_length", 4}});
  for (const char* line : {"# TYPE kedge_calls_total counter\n", "kedge_calls_total{model=\"m\",outcome=\"done\"} 3\n",
                           "kedge_calls_total{model=\"m\",outcome=\"dropped\"} 0\n", "kedge_rows_total{model=\"m\"} 12\n",
                           "kedge_compute_seconds_total{model=\"m\"} 1.5\n", "# TYPE kedge_queue_length gauge\nkedge_queue_length 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace kedge
