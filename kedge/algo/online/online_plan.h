#pragma once
// What an online run comes to before it starts: lengths, steps, updates, and all that must divide. Knows no tensors.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/online_config.h"
#include "kedge/train/step_plan.h"

namespace kedge {

// What the algorithms differ in, as far as the shared parts need to know.
struct OnlineSettings {
  std::string name = {};  // "reinforce": its section below `trainer` and `model`
  OnlineLoopConfig loop = {};
  RolloutConfig rollouts = {};
  OnlineModelConfig model = {};
  RolloutsConfig records = {};
  int64_t samples_per_prompt = 1;  // answers generated
  int64_t rows_per_prompt = 1;     // answers trained on
  int64_t epochs = 1;              // over the answers of a step
  bool wants_reference = false;
  bool wants_logprobs = false;  // the policy's, before a step's updates
  KlEstimator kl_estimator = KlEstimator::abs;
  int64_t critic_warmup_steps = 0;  // rounds that train the critic alone, before the first step
  int64_t critic_epochs = 1;        // the critic's over the answers of a step
  bool names_reward = true;         // false: a reward server at its default address is assumed
  bool drops_unfinished = false;    // responses that a limit cut are not trained on
  RewardConfig reward = {};         // all sources, those that other keys stand for included
  SentWidths widths = {};
  std::string identity = {};  // of whatever else answers and rewards depend on: equal for equal settings
};

// Tokens.
struct OnlineLengths {
  int64_t context = 0;                   // prompt and answer together
  int64_t max_new = 0, val_max_new = 0;  // of an answer
  int64_t max_prompt = 0;
};
// `max_positions` is the network's own limit. UsageError where nothing is left for a prompt.
[[nodiscard]] OnlineLengths online_lengths(const OnlineSettings& settings, int64_t max_positions);

struct OnlinePlan {
  StepPlan steps;
  Intervals intervals;
  int64_t updates_per_step = 0;
  int64_t horizon = 0;  // of the learning rate, in updates
};
// UsageError for what does not divide or cannot be.
[[nodiscard]] OnlinePlan plan_online(const OnlineSettings& settings, int64_t num_prompts, bool has_validation, int num_ranks);

// The plan of a run that goes on, perhaps with another number of prompts a step.
[[nodiscard]] OnlinePlan continue_plan(OnlinePlan plan, const OnlineSettings& settings, const Position& position);

// As low_rate_hint() of the schedule, for the updates that the plan comes to.
[[nodiscard]] std::optional<std::string> low_rate_hint(const OnlineSettings& settings, const OnlinePlan& plan);

// Warns of settings that are legal and seldom meant.
void warn_of_settings(const OnlineSettings& settings);

}  // namespace kedge
