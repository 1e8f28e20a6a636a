#include "kedge/run/rs_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/online_toy.h"

namespace kedge {
namespace {

TEST(RsJob, MakesItsTrainerFromItsSettings) {
  RsJob job;
  load_config(job.section(), std::nullopt,
              {"pretrained_checkpoint.restore_from_path=x", "model.data.data_prefix={train: [x]}", "model.seed=7",
               "model.rs.num_rollout_samples=3", "reward.sources.brief={kind: length, target: 4}"});
  EXPECT_EQ(job.settings().name, "rs");
  EXPECT_EQ(job.settings().model.seed, 7);
  EXPECT_EQ(job.settings().rollouts.num_rollout_samples, 3);
  EXPECT_FALSE(job.has_critic());
  testing::OnlineToy toy;
  EXPECT_EQ(job.make_trainer(toy.parts(), settings_of(toy.rs))->state_dict().count("rs_optimization_step"), 1U);
}

}  // namespace
}  // namespace kedge
