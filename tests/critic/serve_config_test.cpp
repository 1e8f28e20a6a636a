#include "kedge/critic/serve_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/algo/config_sections.h"
#include "kedge/config/config.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

template <typename Config>
Config load(const std::string& yaml, std::vector<std::string>* warnings = nullptr) {
  Config config;
  const auto found = load_section(describe(config), ConfigText{"serve.yaml", yaml}, {});
  if (warnings != nullptr) *warnings = found;
  return config;
}

TEST(ServeConfig, TheDefaultsAreTheReferences) {
  const auto reward = load<RewardServerConfig>("rm_model_file: judge");
  EXPECT_EQ(reward.inference.port, 5555);
  EXPECT_EQ(reward.inference.ip, "127.0.0.1");
  EXPECT_EQ(reward.inference.model_name, "reward_model");
  EXPECT_EQ(reward.inference.max_queue_delay_microseconds, 2000);
  EXPECT_THAT(preferred_batch_sizes(reward.inference.inference_micro_batch_size, "k"), ElementsAre(4));
  EXPECT_EQ(reward.inference.queue_limit, 4096);
  EXPECT_EQ(reward.inference.max_body.bytes, int64_t{1} << 30U);
  EXPECT_TRUE(reward.inference.merge);

  const auto critic = load<CriticServerConfig>("pretrained_checkpoint: {restore_from_path: judge}");
  EXPECT_EQ(critic.trainer.ppo.port, 5556);
  EXPECT_TRUE(critic.trainer.ppo.combine_rm_and_critic_server);
  EXPECT_EQ(critic.trainer.ppo.max_steps, 10000);
  EXPECT_EQ(critic.trainer.ppo.gradient_clip_val, 1.0);
  EXPECT_EQ(critic.model.loss_clip_val, 0.2);
  EXPECT_EQ(critic.model.micro_batch_size, 1);
  EXPECT_EQ(critic.model.global_batch_size, 64);
  EXPECT_EQ(critic.model.encoder_seq_length, 4096);
  EXPECT_EQ(critic.model.optim.lr, 9e-6);
  EXPECT_EQ(critic.model.optim.sched.min_lr, 9e-7);
  EXPECT_TRUE(scorer_options(critic.model).merge_attributes);
  EXPECT_EQ(critic.trainer.ppo.reward_model, RewardModelPlace::automatic);
  EXPECT_FALSE(critic.model.optim.offload_adam_states);
}

TEST(ServeConfig, MicroBatchSizesFollowEachOther) {
  const auto critic = load<CriticServerConfig>("{pretrained_checkpoint: {restore_from_path: judge}, model: {micro_batch_size: 8}}");
  EXPECT_EQ(critic.model.forward_micro_batch_size, 8);
  EXPECT_THAT(preferred_batch_sizes(critic.trainer.ppo.inference_micro_batch_size, "k"), ElementsAre(8));
  const auto reward = load<RewardServerConfig>("{rm_model_file: judge, inference: {inference_micro_batch_size: [16, 4, 16]}}");
  EXPECT_THAT(preferred_batch_sizes(reward.inference.inference_micro_batch_size, "k"), ElementsAre(4, 16));
}

TEST(ServeConfig, TheReferencesOwnFilesLoad) {
  std::vector<std::string> warnings;
  const auto critic = load<CriticServerConfig>(R"(
trainer: {num_nodes: 1, devices: 1, precision: bf16, ppo: {port: 5600, host: 0.0.0.0, insecure: true, merge: off, strip_sequence_length_to_multiple: 32,
          pad_sequence_length_to_multiple: 128, gradient_clip_val: -1, combine_rm_and_critic_server: False}}
exp_manager: {explicit_log_dir: /results, resume_if_exists: True, create_checkpoint_callback: True,
              checkpoint_callback_params: {monitor: step, mode: max, save_top_k: 0, filename: "megatron_gpt-{step}"}}
pretrained_checkpoint: {restore_from_path: judge}
model: {offload_adam_states: True, output_sequence: True, force_head_dtype: float32, reward_model_type: regression,
        regression: {num_attributes: 2, merge_attributes: True, attribute_weights: [0.25, 0.75]},
        reward_standardization: {enable: False, mean: null, std: null}, optim: {lr: 1e-5, sched: {warmup_steps: 10}}}
)",
                                               &warnings);
  EXPECT_EQ(critic.trainer.ppo.ip, "0.0.0.0");
  EXPECT_FALSE(critic.trainer.ppo.merge);
  EXPECT_EQ(critic.trainer.ppo.gradient_clip_val, -1.0) << "no clipping";
  EXPECT_TRUE(critic_options(critic).optim.offload_adam_states);
  EXPECT_THAT(scorer_options(critic.model).attribute_weights, ElementsAre(0.25, 0.75));
  EXPECT_FALSE(scorer_options(critic.model).is_regression) << "its attributes are one reward";
  EXPECT_FALSE(scorer_options(critic.model).standardization.enable);
  EXPECT_EQ(warnings.size(), 7U);
  EXPECT_THAT(warnings, Contains(HasSubstr("exp_manager.checkpoint_callback_params is ignored: a critic keeps its three newest saves")));
  EXPECT_THAT(warnings, Contains(HasSubstr("exp_manager.create_checkpoint_callback is ignored: a critic saves when its actor does")));
}

TEST(ServeConfig, WeightsCountOnlyWhereAttributesAreMerged) {
  const auto config = load<RewardServerConfig>("{rm_model_file: judge, model: {regression: {attribute_weights: [1, 2]}}}");
  EXPECT_TRUE(scorer_options(config.model).attribute_weights.empty());
}

TEST(ServeConfig, TheCriticsOptionsAreTheKeys) {
  const auto config = load<CriticServerConfig>(R"(
pretrained_checkpoint: {restore_from_path: judge}
trainer: {ppo: {max_steps: 50, gradient_clip_val: 0.5}}
model: {micro_batch_size: 2, global_batch_size: 8, forward_micro_batch_size: 16, loss_clip_val: 0.3, seed: 7,
        activations_checkpoint_granularity: full, reward_standardization: {enable: true, mean: 1, std: 2}, optim: {lr: 1e-3},
        regression: {attribute_weights: [1, 3]}}
)");
  const CriticOptions options = critic_options(config);
  EXPECT_EQ(options.micro_batch_size, 2);
  EXPECT_EQ(options.global_batch_size, 8);
  EXPECT_EQ(options.forward_tokens, 16 * 4096);
  EXPECT_EQ(options.loss_clip_val, 0.3);
  EXPECT_EQ(options.standardization.mean, 1);
  EXPECT_EQ(options.optim.lr, 1e-3);
  EXPECT_EQ(options.update.gradient_clip_val, 0.5);
  EXPECT_EQ(options.max_steps, 50);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_TRUE(options.checkpoint_activations);
  EXPECT_THAT(options.attribute_weights, ElementsAre(1, 3));
  ASSERT_TRUE(options.rewards.has_value());
  EXPECT_EQ(options.rewards->standardization.std, 2);
  EXPECT_EQ(options.rewards->max_tokens, 16 * 4096);
  CriticServerConfig separate = config;
  separate.trainer.ppo.combine_rm_and_critic_server = false;
  EXPECT_FALSE(critic_options(separate).rewards.has_value());
  CriticServerConfig apart = config;
  apart.model.regression.merge_attributes = false;
  EXPECT_THAT(error_of([&] { return critic_options(apart).seed; }), HasSubstr("merge_attributes: must be true"));
}

// A critic that starts from a regression model standardises its one value and its one reward, as the reference's does.
TEST(ServeConfig, ACriticOfARegressionModelStandardises) {
  const auto config = load<CriticServerConfig>(
      "{pretrained_checkpoint: {restore_from_path: j}, model: {reward_model_type: regression, regression: {num_attributes: 1}, "
      "reward_standardization: {enable: true, mean: 5.3735, std: 1.2723}}}");
  const CriticOptions options = critic_options(config);
  EXPECT_TRUE(options.standardization.enable);
  ASSERT_TRUE(options.rewards);
  EXPECT_TRUE(options.rewards->standardization.enable);
  EXPECT_EQ(options.rewards->standardization.mean, 5.3735);
  EXPECT_FALSE(options.rewards->is_regression);
}

TEST(ServeConfig, WhatCannotBe) {
  EXPECT_THAT(error_of([] { return load<RewardServerConfig>("{rm_model_file: judge, inference: {micro_batch_size: 4}}"); }),
              HasSubstr("inference.micro_batch_size: renamed to inference_micro_batch_size"));
  EXPECT_EQ(error_of([] { return preferred_batch_sizes(Json("four"), "inference.inference_micro_batch_size"); }),
            "inference.inference_micro_batch_size: expected a number of rows, or a list of them, found \"four\"");
  EXPECT_EQ(error_of([] { return preferred_batch_sizes(Json(0), "k"); }), "k: expected a number of rows, or a list of them, found 0");
  EXPECT_EQ(error_of([] { return preferred_batch_sizes(Json(Json::Array{}), "k"); }), "k: an empty list");
  EXPECT_EQ(error_of([] {
              return scorer_options(
                         load<RewardServerConfig>("{rm_model_file: j, model: {reward_standardization: {enable: true, mean: 1}}}").model)
                  .is_regression;
            }),
            "model.reward_standardization: mean and std are required if it is enabled");
}

}  // namespace
}  // namespace kedge
