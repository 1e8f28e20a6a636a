#include "kedge/model/files/run_summary.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

RunSummary summary_of(const TempFolder& run, const char* summary, const char* starts) {
  run.file("summary.json", summary);
  return *read_run_summary(run.path(), Json::parse(starts));
}

TEST(RunSummary, SaysHowARunEnded) {
  const TempFolder run;
  EXPECT_FALSE(read_run_summary(run.path(), Json::parse("[{}]")).has_value());
  const RunSummary complete = summary_of(run, R"({"reason": "complete", "step": 6, "max_steps": 6, "starts": 1})", R"([{"max_steps": 6}])");
  EXPECT_TRUE(complete.is_complete());
  EXPECT_FALSE(complete.is_old);
  EXPECT_EQ(complete.step, 6);
  EXPECT_FALSE(complete.model_step.has_value());
  EXPECT_EQ(summary_of(run, R"({"reason": "complete", "step": 6, "model_step": 4})", R"([{"max_steps": 6}])").model_step, 4);
  const RunSummary stopped = summary_of(run, R"({"reason": "SIGTERM", "step": 3, "max_steps": 6, "starts": 1})", "[{}]");
  EXPECT_FALSE(stopped.is_complete());
  EXPECT_FALSE(stopped.is_old);
  EXPECT_EQ(stopped.max_steps, 6) << "old starts do not say it";
}

TEST(RunSummary, IsOldAfterAStartThatHadSomethingToDo) {
  const TempFolder run;
  const char *complete = R"({"reason": "complete", "step": 6, "max_steps": 6, "starts": 1})",
             *stopped = R"({"reason": "SIGTERM", "step": 3, "max_steps": 6, "starts": 1})";
  EXPECT_TRUE(summary_of(run, complete, R"([{"max_steps": 6}, {"max_steps": 10}])").is_old);
  EXPECT_FALSE(summary_of(run, complete, R"([{"max_steps": 6}, {"max_steps": 6}])").is_old);
  EXPECT_TRUE(summary_of(run, stopped, R"([{"max_steps": 6}, {"max_steps": 6}])").is_old);
}

TEST(RunSummary, FilesThatCannotBeReadAreNamed) {
  const TempFolder run;
  const auto fault = [&](const char* summary, const char* starts) { return error_of([&] { return summary_of(run, summary, starts); }); };
  const std::string file = (run / "summary.json").string();
  EXPECT_EQ(fault(R"({"step": 1})", "[{}]"), file + ": no \"reason\" field");
  EXPECT_EQ(fault(R"({"reason": "complete", "step": 1})", "[{}]"), file + ": no \"max_steps\" field");
  EXPECT_EQ(fault(R"({"reason": "complete", "step": 1})", "[]"), (run / "run.json").string() + ": records no start");
}

}  // namespace
}  // namespace kedge
