#include "kedge/run/critic_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

Mesh cpu_mesh() { return {.world = Group::single(), .local_rank = 0, .device = at::kCPU}; }

CriticServerConfig config_of(const Path& folder) {
  CriticServerConfig config;
  config.pretrained_checkpoint.restore_from_path = folder.string();
  config.model.encoder_seq_length = 32;
  return config;
}

TEST(CriticStart, ARewardModelKeepsItsHead) {
  const testing::JobToy toy;
  const CriticStart start = find_critic_start(config_of(toy.path() / "rm"), cpu_mesh(), {.folder = "key"});
  EXPECT_FALSE(start.draws_head);
  EXPECT_EQ(start.head.num_labels, 1);
  EXPECT_TRUE(start.memory.verdict.fits);
  EXPECT_NE(start_critic(config_of(toy.path() / "rm"), start), nullptr);
}

TEST(CriticStart, AnyModelGetsANewHeadWhereNobodyWantsRewards) {
  const testing::JobToy toy;
  CriticServerConfig config = config_of(toy.path() / "lm");
  EXPECT_THAT(error_of([&] { return find_critic_start(config, cpu_mesh(), {.folder = "key"}).folder; }),
              HasSubstr("holds no reward model (it has no score head)"));
  config.trainer.ppo.combine_rm_and_critic_server = false;
  EXPECT_TRUE(find_critic_start(config, cpu_mesh(), {.folder = "key"}).draws_head);
}

}  // namespace
}  // namespace kedge
