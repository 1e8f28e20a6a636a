#include "kedge/run/supervised_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/run/sft_job.h"

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(SupervisedJob, PlansWithoutReadingWeights) {
  const testing::JobToy toy;
  write_atomic(toy.path() / "lm/model.safetensors", "no weights");
  SftJob job;
  testing::load_job(job, {toy.sft()});
  const PlanReport report = job.plan({});
  EXPECT_TRUE(report.fits);
  EXPECT_EQ(report.json.at("steps_per_epoch", "plan").as_integer("plan"), 2);
  EXPECT_THAT(report.text, HasSubstr("8 training rows"));
  EXPECT_FALSE(job.plan({.beside = int64_t{1} << 60U}).fits);
  EXPECT_FALSE(is_folder(toy.path() / "run"));
}

TEST(SupervisedJob, ARunBeginsFromACheckpointOfAnother) {
  const testing::JobToy toy;
  SftJob parent;
  testing::load_job(parent, {toy.sft("parent"), {"trainer.sft.save_interval=1"}});
  EXPECT_EQ(parent.run({}), kExitOk);
  Path checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(toy.path() / "parent/checkpoints")) checkpoint = entry.path();
  SftJob child;
  testing::load_job(child, {toy.sft("child"), {"trainer.sft.max_steps=3"}});
  EXPECT_EQ(child.run({.fork = checkpoint, .arguments = {"run", "--fork"}}), kExitOk);
  EXPECT_NE(toy.weights_hash("child"), toy.weights_hash("parent"));
  EXPECT_THAT(read_text(toy.path() / "child/run.json"), HasSubstr("--fork"));
}

}  // namespace
}  // namespace kedge
