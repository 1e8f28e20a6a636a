#include "kedge/run/critic_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/shapes.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;

constexpr int64_t kPlenty = int64_t{1} << 42U;

CriticServerConfig config_with(RewardModelPlace place) {
  CriticServerConfig config;
  config.trainer.ppo.reward_model = place;
  config.model.micro_batch_size = 2;
  return config;
}

CriticRoom room_of(bool is_cuda, int64_t free = kPlenty, int64_t host_free = kPlenty) {
  return {.network = shape_config("135m"),
          .head = {HeadKind::score, 1, false},
          .dtype = at::kBFloat16,
          .is_cuda = is_cuda,
          .free = {.device = free, .host = host_free}};
}

// The weights of the network once, in bf16.
int64_t copy_bytes() { return 2 * flat_size(make_parameters(shape_config("135m"), {HeadKind::score, 1, false}).specs); }

// What it needs without a reward model.
int64_t alone(const CriticServerConfig& with, bool is_cuda) {
  CriticServerConfig config = with;
  config.trainer.ppo.combine_rm_and_critic_server = false;
  return plan_critic_memory(config, room_of(is_cuda)).verdict.needed;
}

TEST(CriticMemory, RowsOfFullLengthAreWhatItTrainsOn) {
  const CriticServerConfig config = config_with(RewardModelPlace::automatic);
  MemoryInput input;
  input.model = shape_config("135m");
  input.head = {HeadKind::score, 1, false};
  input.dtype = at::kBFloat16;
  input.is_cuda = true;
  input.optimizer = config.model.optim;
  input.longest = std::min(config.model.encoder_seq_length, input.model.max_positions);
  input.rows = 2;
  input.tokens = 2 * input.longest;
  EXPECT_EQ(alone(config, true), plan_memory(input).peak());
}

TEST(CriticMemory, RanksThatHoldItTogetherNeedLessEach) {
  const CriticServerConfig config = config_with(RewardModelPlace::automatic);
  const auto needed = [&](Sharding kind) {
    CriticRoom room = room_of(true);
    room.shards = {.kind = kind, .shard = Group::imagined(8)};
    return plan_critic_memory(config, room).verdict.needed;
  };
  EXPECT_LT(needed(Sharding::optimizer), needed(Sharding::none));
  EXPECT_LT(needed(Sharding::gradients), needed(Sharding::optimizer));
  EXPECT_LT(needed(Sharding::all), needed(Sharding::gradients));
}

TEST(CriticMemory, TheRewardModelStaysWhereThereIsRoom) {
  for (const bool is_cuda : {false, true}) {
    const CriticServerConfig config = config_with(RewardModelPlace::automatic);
    const CriticMemory memory = plan_critic_memory(config, room_of(is_cuda, alone(config, is_cuda) + copy_bytes()));
    EXPECT_TRUE(memory.verdict.fits);
    EXPECT_EQ(memory.reward_model, ReferenceKind::resident);
    EXPECT_EQ(memory.verdict.needed, alone(config, is_cuda) + copy_bytes());
    EXPECT_THAT(memory.reward_model_text(), HasSubstr("resident, "));
  }
}

TEST(CriticMemory, WithoutRoomItGoesToHostMemory) {
  const CriticServerConfig config = config_with(RewardModelPlace::automatic);
  const int64_t tight = alone(config, true) + copy_bytes() - 1;
  const CriticMemory memory = plan_critic_memory(config, room_of(true, tight));
  EXPECT_TRUE(memory.verdict.fits);
  EXPECT_EQ(memory.reward_model, ReferenceKind::swapped);
  EXPECT_EQ(memory.verdict.needed, alone(config, true));
  EXPECT_THAT(memory.reward_model_text(), HasSubstr("swapped in for every call, "));
  const MemoryFit poor = plan_critic_memory(config, room_of(true, tight, copy_bytes())).verdict;
  EXPECT_THAT(error_of([&] { require_fit(poor, "the critic"); }), HasSubstr("of host memory"));
  // Where the host computes it would only cost more.
  const CriticMemory host = plan_critic_memory(config, room_of(false, alone(config, false) + copy_bytes() - 1));
  EXPECT_FALSE(host.verdict.fits);
  EXPECT_EQ(host.reward_model, ReferenceKind::resident);
}

TEST(CriticMemory, WhatIsAskedForIsDoneOrRefusedWithTheKeyThatHelps) {
  const CriticServerConfig resident = config_with(RewardModelPlace::resident), swapped = config_with(RewardModelPlace::swapped);
  EXPECT_EQ(plan_critic_memory(swapped, room_of(true)).reward_model, ReferenceKind::swapped);
  const CriticMemory memory = plan_critic_memory(resident, room_of(true, alone(resident, true) + copy_bytes() - 1));
  EXPECT_FALSE(memory.verdict.fits);
  EXPECT_EQ(memory.verdict.needed, alone(resident, true) + copy_bytes());
  EXPECT_EQ(memory.verdict.free, alone(resident, true) + copy_bytes() - 1);
  EXPECT_THAT(memory.verdict.remedies, Contains("trainer.ppo.reward_model=swapped"));
  EXPECT_THAT(memory.verdict.remedies, Contains("model.micro_batch_size=1"));
  EXPECT_FALSE(plan_critic_memory(swapped, room_of(true, 1)).verdict.fits);
}

TEST(CriticMemory, BelowAdaptersItTakesNothing) {
  for (const RewardModelPlace place : {RewardModelPlace::automatic, RewardModelPlace::resident, RewardModelPlace::swapped}) {
    CriticServerConfig config = config_with(place);
    config.model.peft.peft_scheme = PeftScheme::lora;
    const CriticMemory memory = plan_critic_memory(config, room_of(true));
    EXPECT_EQ(memory.reward_model, ReferenceKind::adapters_off);
    EXPECT_EQ(memory.verdict.needed, alone(config, true));
  }
}

TEST(CriticMemory, MomentsInHostMemoryNeedRoomThere) {
  CriticServerConfig config = config_with(RewardModelPlace::automatic);
  config.model.optim.offload_adam_states = true;
  const CriticMemory memory = plan_critic_memory(config, room_of(true));
  EXPECT_LT(memory.verdict.needed, alone(config_with(RewardModelPlace::automatic), true) + copy_bytes());
  const int64_t moments = memory.verdict.plan.host_optimizer;
  EXPECT_EQ(memory.verdict.host_needed, moments + gpu_host_bytes());
  EXPECT_FALSE(plan_critic_memory(config, room_of(true, kPlenty, memory.verdict.host_needed - 1)).verdict.fits);
}

TEST(CriticMemory, ManyRowsThatAreOnlyLookedAtCountToo) {
  CriticServerConfig config = config_with(RewardModelPlace::automatic);
  config.model.forward_micro_batch_size = 400;
  const CriticMemory memory = plan_critic_memory(config, room_of(true));
  EXPECT_EQ(memory.verdict.worst().name, "values");
}

}  // namespace
}  // namespace kedge
