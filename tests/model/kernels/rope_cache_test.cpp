#include "kedge/model/kernels/rope_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::largest_difference;
using testing::same_bits;

PackedBatch positions_batch(const std::vector<int64_t>& lengths) { return testing::batch_of(lengths); }

ModelConfig config_with(const RopeConfig& rope) {
  ModelConfig config = testing::tiny_config(testing::kTinyLlama);
  config.rope = rope;
  return config;
}

// cos(position * frequency), computed apart in double precision.
void expect_angles(const Rotation& rotation, const std::vector<int64_t>& positions, const std::vector<float>& frequencies, double factor) {
  ASSERT_EQ(rotation.cos.sizes(), at::IntArrayRef({static_cast<int64_t>(positions.size()), static_cast<int64_t>(frequencies.size())}));
  for (size_t token = 0; token < positions.size(); ++token)
    for (size_t pair = 0; pair < frequencies.size(); ++pair) {
      const double angle = static_cast<double>(positions[token]) * static_cast<double>(frequencies[pair]);
      const auto at = [&](const Tensor& x) { return x[static_cast<int64_t>(token)][static_cast<int64_t>(pair)].item<double>(); };
      EXPECT_NEAR(at(rotation.cos), factor * std::cos(angle), 1e-5);
      EXPECT_NEAR(at(rotation.sin), factor * std::sin(angle), 1e-5);
    }
}

TEST(RotaryTable, EveryRowTurnsFromItsOwnStart) {
  const ModelConfig config = testing::tiny_config(testing::kTinyLlama);
  RotaryTable table(config, at::kCPU);
  const Rotation rotation = table.rotation(positions_batch({3, 1, 2}));
  EXPECT_EQ(rotation.num_heads, 6);  // four of queries, two of keys
  EXPECT_EQ(rotation.head_dim, 6);
  EXPECT_EQ(rotation.dim, 6);
  expect_angles(rotation, {0, 1, 2, 0, 0, 1}, inverse_frequencies(config.rope, 3), 1);
}

TEST(RotaryTable, GrowsWithoutChangingWhatItGave) {
  const ModelConfig config = testing::tiny_config(testing::kTinyLlama);
  RotaryTable table(config, at::kCPU);
  const Rotation before = table.rotation(positions_batch({40}));
  const Rotation longer = table.rotation(positions_batch({700}));
  EXPECT_EQ(longer.cos.size(0), 700);
  EXPECT_TRUE(same_bits(longer.cos.narrow(0, 0, 40), before.cos));
  EXPECT_TRUE(same_bits(table.rotation(positions_batch({40})).sin, before.sin));
}

TEST(RotaryTable, YarnScalesCosinesAndSines) {
  RopeConfig rope{.type = RopeType::yarn, .dim = 6, .max_positions = 64, .factor = 4, .original_positions = 16, .attention_factor = 1.25};
  RotaryTable table(config_with(rope), at::kCPU);
  expect_angles(table.rotation(positions_batch({4})), {0, 1, 2, 3}, inverse_frequencies(rope, 4), 1.25);
}

TEST(RotaryTable, DynamicRowsBeyondTheModelsLengthTurnByTheirOwnAngles) {
  const RopeConfig rope{.type = RopeType::dynamic, .dim = 6, .max_positions = 5, .factor = 2};
  RotaryTable table(config_with(rope), at::kCPU);
  const Rotation rotation = table.rotation(positions_batch({4, 8, 3}));
  const Rotation slice{rotation.cos.narrow(0, 4, 8), rotation.sin.narrow(0, 4, 8), 0, 0, 0};
  expect_angles(slice, {0, 1, 2, 3, 4, 5, 6, 7}, inverse_frequencies(rope, 8), 1);
  EXPECT_GT(largest_difference(slice.cos.narrow(0, 1, 2), rotation.cos.narrow(0, 1, 2)), 1e-3);
  EXPECT_TRUE(same_bits(rotation.cos.narrow(0, 12, 3), rotation.cos.narrow(0, 0, 3)));  // short rows keep the plain ones
}

}  // namespace
}  // namespace kedge
