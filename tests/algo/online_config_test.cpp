#include "kedge/algo/online_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(OnlineConfig, WithoutSourcesRewardsComeFromAServer) {
  OnlineConfig config;
  const RewardConfig nearby = reward_of(config);
  ASSERT_EQ(nearby.sources.size(), 1U);
  EXPECT_EQ(nearby.sources.begin()->second.kind, RewardKind::server);
  EXPECT_EQ(nearby.sources.begin()->second.url, "http://localhost:5555");
  EXPECT_EQ(nearby.sources.begin()->second.model_name, "reward_model");
  config.remote_rm.emplace();
  config.remote_rm->reward_model = {.name = "judge", .ip = "there", .port = 9};
  config.remote_rm->pad_to_length = 64;
  const RewardSourceConfig remote = reward_of(config).sources.begin()->second;
  EXPECT_EQ(remote.url, "http://there:9");
  EXPECT_EQ(remote.model_name, "judge");
  EXPECT_EQ(remote.pad_to_length, 64);
}

TEST(OnlineConfig, AServerOfTheReferencesKindAndSourcesExcludeEachOther) {
  OnlineConfig config;
  config.reward.sources["short"].kind = RewardKind::length;
  config.reward.sources["short"].target = 5;
  EXPECT_EQ(reward_of(config).sources.size(), 1U);
  config.remote_rm.emplace();
  EXPECT_THAT(error_of([&] { return reward_of(config); }), HasSubstr("remote_rm: is the one source of rewards"));
}

TEST(OnlineConfig, WhatAnswersAndRewardsDependOnHasAName) {
  RewardConfig reward;
  RolloutConfig rollouts;
  const std::string before = rollout_identity(reward, rollouts);
  EXPECT_EQ(rollout_identity(reward, rollouts), before);
  rollouts.sampling_params.temperature = 0.5;
  EXPECT_NE(rollout_identity(reward, rollouts), before);
  rollouts = {};
  reward.scale = 2;
  EXPECT_NE(rollout_identity(reward, rollouts), before);
}

}  // namespace
}  // namespace kedge
