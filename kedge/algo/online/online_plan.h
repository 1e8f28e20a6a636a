#pragma once
// The plan of an online run before it starts: lengths, steps, updates, and all sizes that must divide. Independent of tensors.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/online_config.h"
#include "kedge/train/step_plan.h"

namespace kedge {

// What needs the policy's log-probabilities as they are before a step's updates.
enum class LogprobUse {
  none,    // nothing
  loss,    // the loss of a token, and what is reported
  prompt,  // the advantages of a prompt's responses too: those of these responses
  step,    // those of all responses of a step
};

// How the algorithms differ, as far as the shared parts need it.
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
  LogprobUse logprob_use = LogprobUse::none;
  KlEstimator kl_estimator = KlEstimator::abs;
  int64_t critic_warmup_steps = 0;  // rounds that train the critic alone, before the first step
  int64_t critic_epochs = 1;        // the critic's over the answers of a step
  bool names_reward = true;         // false: a reward server at its default address is assumed
  bool drops_unfinished = false;    // responses cut off by a limit are not trained on
  int64_t max_batches = 1;          // of prompts in a step; more than 1: dynamic sampling
  RewardConfig reward = {};         // all sources, including those that other keys configure
  SentWidths widths = {};
  std::string identity = {};  // of everything else that answers and rewards depend on: equal for equal settings
};

// What the settings of all algorithms have in common. UsageError for contradictory rewards.
template <typename Config>
[[nodiscard]] OnlineSettings shared_settings(const Config& config) {
  OnlineSettings settings;
  settings.name = Config::kName;
  settings.loop = config.trainer.loop;
  settings.rollouts = config.model.rollouts;
  settings.model = config.model;
  settings.records = config.rollouts;
  settings.reward = reward_of(config);
  settings.widths = widths_of(config);
  settings.identity = rollout_identity(settings.reward, settings.model.data, settings.rollouts);
  return settings;
}

// One update for a step where no size of updates is given.
void fill_batch_size(OnlineSettings& settings);

// Tokens.
struct OnlineLengths {
  int64_t context = 0;                   // prompt and answer together
  int64_t max_new = 0, val_max_new = 0;  // of an answer
  int64_t max_prompt = 0;
};
// `max_positions` is the network's own limit. UsageError if nothing is left for a prompt.
[[nodiscard]] OnlineLengths online_lengths(const OnlineSettings& settings, int64_t max_positions);

struct OnlinePlan {
  StepPlan steps;
  Intervals intervals;
  int64_t updates_per_step = 0;
  int64_t num_updates = 0;  // of the run
  int64_t horizon = 0;      // of the learning rate, in updates
};
// UsageError for sizes that do not divide or are impossible.
[[nodiscard]] OnlinePlan plan_online(const OnlineSettings& settings, int64_t num_prompts, bool has_validation, int num_ranks);

// The longest that all responses to one prompt may be in a pass, in tokens.
[[nodiscard]] int64_t longest_group(const OnlineSettings& settings, const OnlineLengths& lengths);
// The tokens that passes compute, as a share of those of the rows; for rows of this length with prompts of `prompt` tokens. Updates of
// fewer rows than a step has share less: chance decides which responses to a prompt are in the same one.
[[nodiscard]] double computed_share(const OnlineSettings& settings, int64_t length, int64_t prompt);

// A step's only update computes the very log-probabilities that a pass before it would. Where advantages depend on them, the update's
// passes then have all responses to a prompt, which must fit.
[[nodiscard]] bool update_gives_logprobs(const OnlineSettings& settings, const OnlineLengths& lengths, const OnlinePlan& plan);
// The update's passes have all responses to a prompt, wherever log-probabilities come from, so that no bit depends on it.
[[nodiscard]] bool keeps_prompts_together(const OnlineSettings& settings, const OnlineLengths& lengths, const OnlinePlan& plan);

// The plan of a resumed run, perhaps with another number of prompts or updates per step.
[[nodiscard]] OnlinePlan continue_plan(OnlinePlan plan, const OnlineSettings& settings, const Position& position);

// As low_rate_hint() of the schedule, for the updates of the plan.
[[nodiscard]] std::optional<std::string> low_rate_hint(const OnlineSettings& settings, const OnlinePlan& plan);

// What to do about responses that do not end: the second half of a warning.
[[nodiscard]] std::string ending_remedy(const OnlineSettings& settings);

// Warns of settings that are legal but rarely intended.
void warn_of_settings(const OnlineSettings& settings);

}  // namespace kedge
