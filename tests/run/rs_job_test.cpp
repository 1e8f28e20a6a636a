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
  EXPECT_NE(dynamic_cast<RSTrainer*>(job.make_trainer(toy.parts(), settings_of(toy.rs)).get()), nullptr);
}

}  // namespace
}  // namespace kedge
