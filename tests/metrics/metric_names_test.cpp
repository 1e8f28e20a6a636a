#include "kedge/metrics/metric_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A step of PPO: what its two lines have.
Metrics some_metrics() {
  return {{"train_rollouts/rewards", 1.5},
          {"train_rollouts/rewards/right", 0.75},
          {"train_rollouts/rewards_std", 0.5},
          {"train_rollouts/rewards_group_std", 0.375},
          {"train_rollouts/groups_without_spread", 0.25},
          {"train_rollouts/rewards_with_kl", 1.25},
          {"train_rollouts/init_policy_kl", 0.125},
          {"train_rollouts/entropy", 2},
          {"train_rollouts/generation_length", 60},
          {"train_rollouts/generation_length_min", 3},
          {"train_rollouts/generation_length_max", 64},
          {"train_rollouts/prompt_lengths", 12},
          {"train_rollouts/fraction_of_samples_properly_ended", 0.75},
          {"train_rollouts/logprob_gap_mean", 0.01},
          {"train_rollouts/logprob_gap_max", 0.02},
          {"train_rollouts/critic_loss", 9},
          {"train_rollouts/distinct_2", 0.9},
          {"train_rollouts/watch/mood", 1},
          {"val_rollouts/rewards", 2.5},
          {"train_optim/loss", -0.5},
          {"train_optim/lr", 1e-6},
          {"train_optim/grad_norm", 3},
          {"train_optim/ppo_clip_fraction", 0.1},
          {"train/step_time", 7},
          {"train/epoch", 1},
          {"timers/generate", 4}};
}

TEST(MetricNames, AreTrls) {
  EXPECT_THAT(
      as_known_elsewhere(some_metrics(), MetricNames::trl),
      UnorderedElementsAre(Pair("reward", 1.5), Pair("rewards/right/mean", 0.75), Pair("reward_std", 0.5),
                           Pair("frac_reward_zero_std", 0.25), Pair("kl", 0.125), Pair("entropy", 2), Pair("completions/mean_length", 60),
                           Pair("completions/min_length", 3), Pair("completions/max_length", 64), Pair("completions/clipped_ratio", 0.25),
                           Pair("sampling/sampling_logp_difference/mean", 0.01), Pair("sampling/sampling_logp_difference/max", 0.02),
                           Pair("eval_reward", 2.5), Pair("loss", -0.5), Pair("learning_rate", 1e-6), Pair("grad_norm", 3),
                           Pair("clip_ratio/region_mean", 0.1), Pair("step_time", 7), Pair("epoch", 1)));
}

// Rewards with KL and the loss are other quantities there.
TEST(MetricNames, AreVerls) {
  EXPECT_THAT(as_known_elsewhere(some_metrics(), MetricNames::verl),
              UnorderedElementsAre(Pair("critic/score/mean", 1.5), Pair("actor/reward_kl_penalty", 0.125), Pair("actor/entropy", 2),
                                   Pair("response_length/mean", 60), Pair("response_length/min", 3), Pair("response_length/max", 64),
                                   Pair("response_length/clip_ratio", 0.25), Pair("prompt_length/mean", 12), Pair("critic/vf_loss", 9),
                                   Pair("actor/lr", 1e-6), Pair("actor/grad_norm", 3), Pair("actor/pg_clipfrac", 0.1),
                                   Pair("timing_s/step", 7), Pair("training/epoch", 1), Pair("timing_s/gen", 4)));
}

// A step of KTO and a validation of DPO.
TEST(MetricNames, OfPreferencesAreTrls) {
  const Metrics metrics = {{"train/loss", 0.5},
                           {"train/kl", 2},
                           {"train/rewards/margins", 0.25},
                           {"train/logps/chosen", -9},
                           {"train/rewards_chosen_mean", 1},
                           {"validation/loss", 0.75},
                           {"validation/rewards/accuracies", 1},
                           {"validation/acc", 1}};
  EXPECT_THAT(as_known_elsewhere(metrics, MetricNames::trl),
              UnorderedElementsAre(Pair("loss", 0.5), Pair("kl", 2), Pair("rewards/margins", 0.25), Pair("logps/chosen", -9),
                                   Pair("eval_loss", 0.75), Pair("eval_rewards/accuracies", 1)));
  EXPECT_THAT(as_known_elsewhere(metrics, MetricNames::verl), IsEmpty());
}

TEST(MetricNames, KedgesOwnAreWrittenOnce) { EXPECT_THAT(as_known_elsewhere(some_metrics(), MetricNames::kedge), IsEmpty()); }

}  // namespace
}  // namespace kedge
