#include "kedge/algo/online/online_plan.h"

#include <algorithm>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/train/optim/schedule.h"

namespace kedge {
namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// As NeMo-Aligner counts: trainer steps if they are capped, else batches of prompts, although every tick is an update.
int64_t reference_horizon(const OnlineSettings& settings, int64_t num_prompts, int num_ranks) {
  if (settings.loop.max_steps >= 0) return settings.loop.max_steps;
  const int64_t share = settings.model.global_batch_size / num_ranks;
  return divided_up(divided_up(num_prompts, num_ranks), share) * settings.loop.max_epochs;
}

}  // namespace

OnlineLengths online_lengths(const OnlineSettings& settings, int64_t max_positions) {
  OnlineLengths lengths;
  lengths.context = std::min({settings.model.encoder_seq_length, settings.model.data.seq_length, max_positions});
  lengths.max_new = settings.rollouts.length_params.max_length.value_or(lengths.context / 2);
  const std::optional<LengthConfig>& validation = settings.rollouts.val_length_params;
  lengths.val_max_new = validation ? validation->max_length.value_or(lengths.context / 2) : lengths.max_new;
  const int64_t longest = std::max(lengths.max_new, lengths.val_max_new);
  check(longest < lengths.context, "model.", settings.name, ".length_params.max_length: answers of up to ", longest,
        " tokens leave no room for a prompt in a context of ", lengths.context,
        " (model.encoder_seq_length, model.data.seq_length: ", std::min(settings.model.encoder_seq_length, settings.model.data.seq_length),
        "; the network's own limit: ", max_positions, ")");
  lengths.max_prompt = lengths.context - longest;
  return lengths;
}

void fill_batch_size(OnlineSettings& settings) {
  if (settings.model.global_batch_size == 0)
    settings.model.global_batch_size = settings.rollouts.num_rollout_samples * settings.rows_per_prompt;
}

OnlinePlan plan_online(const OnlineSettings& settings, int64_t num_prompts, bool has_validation, int num_ranks) {
  const int64_t batch = settings.rollouts.num_rollout_samples, global_size = settings.model.global_batch_size;
  const std::string section = "trainer." + settings.name;
  const char* ranks = num_ranks == 1 ? " rank" : " ranks";
  check(num_prompts >= batch, "model.data.data_prefix: ", num_prompts, num_prompts == 1 ? " prompt is" : " prompts are",
        " fewer than one step takes, ", batch, " (model.", settings.name, ".num_rollout_samples)");
  check(global_size % (settings.model.micro_batch_size * num_ranks) == 0, "model.global_batch_size: ", global_size,
        " answers do not divide into micro-batches of ", settings.model.micro_batch_size, " on ", num_ranks, ranks);
  const int64_t rows = batch * settings.rows_per_prompt;
  check(rows % global_size == 0, "model.global_batch_size: the ", rows, " answers of a step (", batch, " prompts x ",
        settings.rows_per_prompt, ") do not divide into updates of ", global_size, "; expected a divisor of ", rows);
  OnlinePlan plan;
  plan.steps = plan_steps(num_prompts, batch, settings.loop.max_epochs, settings.loop.max_steps);
  plan.intervals.max_steps = plan.steps.max_steps;
  plan.intervals.validate = std::max<int64_t>(0, settings.loop.val_check_interval);
  plan.intervals.save = std::max<int64_t>(0, settings.loop.save_interval);
  plan.intervals.has_validation = has_validation;
  check_intervals(plan.intervals, section);
  plan.updates_per_step = rows / global_size * settings.epochs;
  plan.num_updates = plan.steps.max_steps * plan.updates_per_step;
  plan.horizon = settings.model.optim.sched.horizon == ScheduleHorizon::optimizer_steps
                     ? plan.num_updates
                     : reference_horizon(settings, num_prompts, num_ranks);
  return plan;
}

int64_t longest_group(const OnlineSettings& settings, const OnlineLengths& lengths) {
  if (!settings.rollouts.share_prompts) return settings.rows_per_prompt * lengths.context;
  const int64_t own = std::min(lengths.max_new + 1, lengths.context);  // with the last token of the prompt
  return lengths.context + (settings.rows_per_prompt - 1) * own;
}

double computed_share(const OnlineSettings& settings, int64_t length, int64_t prompt) {
  const auto per_prompt = static_cast<double>(settings.rows_per_prompt);
  if (!settings.rollouts.share_prompts || prompt < 2) return 1;
  const double rows = static_cast<double>(settings.rollouts.num_rollout_samples) * per_prompt;
  const double of_step = static_cast<double>(settings.model.global_batch_size) / rows;
  // Of the prompts of a step, those that an update has: a row is outside it with probability 1 - of_step.
  const double prompts = (1 - std::pow(1 - of_step, per_prompt)) / (of_step * per_prompt);
  const auto shared = static_cast<double>(prompt - 1), all = static_cast<double>(length);
  return (prompts * shared + all - shared) / all;
}

bool update_gives_logprobs(const OnlineSettings& settings, const OnlineLengths& lengths, const OnlinePlan& plan) {
  return keeps_prompts_together(settings, lengths, plan) || (settings.logprob_use == LogprobUse::loss && plan.updates_per_step == 1);
}

bool keeps_prompts_together(const OnlineSettings& settings, const OnlineLengths& lengths, const OnlinePlan& plan) {
  return settings.logprob_use == LogprobUse::prompt && plan.updates_per_step == 1 &&
         longest_group(settings, lengths) <= settings.rollouts.tokens_per_pass;
}

OnlinePlan continue_plan(OnlinePlan plan, const OnlineSettings& settings, const Position& position) {
  if (settings.max_batches == 1) {  // else a step takes as many prompts as it needs
    plan.steps =
        continue_steps(plan.steps, position, settings.rollouts.num_rollout_samples, settings.loop.max_epochs, settings.loop.max_steps);
    plan.intervals.max_steps = plan.steps.max_steps;
  }
  // A step may have had another number of updates until now.
  plan.num_updates = position.num_updates + std::max<int64_t>(0, plan.steps.max_steps - position.step) * plan.updates_per_step;
  if (settings.model.optim.sched.horizon == ScheduleHorizon::optimizer_steps) plan.horizon = plan.num_updates;
  return plan;
}

std::optional<std::string> low_rate_hint(const OnlineSettings& settings, const OnlinePlan& plan) {
  const OptimConfig& optim = settings.model.optim;
  const std::string where = "model.optim.sched";
  return low_rate_hint(Schedule(optim.sched, optim.lr, plan.horizon, where), optim.sched, optim.lr, plan.num_updates, where);
}

std::string ending_remedy(const OnlineSettings& settings) {
  const std::string section = "model." + settings.name;
  return str(settings.drops_unfinished ? str(", and trainer.", settings.name,
                                             ".unfinished=drop does not train on those: updates without a response that ended change "
                                             "nothing. Set trainer.",
                                             settings.name, ".unfinished=keep, allow")
                                       : "; to let them end, allow",
             " longer ones (", section, ".length_params.max_length), or name what ends them (", section, ".sampling_params.end_strings)");
}

void warn_of_settings(const OnlineSettings& settings) {
  if (!settings.names_reward)
    log_warn("no reward is configured (reward.sources, remote_rm): using the reward server at ",
             urls_of(settings.reward.sources.begin()->second, "remote_rm").front(),
             ", and waiting for it if it is not up; docs/rewards.md lists the kinds of rewards");
  const SamplingConfig& sampling = settings.rollouts.sampling_params;
  const std::string key = "model." + settings.name + ".sampling_params";
  const bool draws_all = sampling.top_k == 0 && (sampling.top_p <= 0 || sampling.top_p >= 1) && sampling.repetition_penalty == 1;
  if (sampling.use_greedy)
    log_warn(key, ".use_greedy: all answers to a prompt are identical, so there is nothing to learn from their differences");
  else if (!draws_all)
    log_warn(key,
             ": answers are not sampled from the policy that is trained, whose log-probabilities ignore top_k, top_p and penalties; ratios "
             "and the gradient are biased");
  else if (sampling.temperature != settings.rollouts.temperature())
    log_warn("model.", settings.name, ".logprob_temperature=one: answers are sampled at temperature ", sampling.temperature,
             ", but the policy that is trained has 1; ratios and the gradient are biased");
  if (settings.rollouts.length_params.min_length > 1)
    log_warn("model.", settings.name,
             ".length_params.min_length: the trained policy's log-probabilities ignore that end tokens are masked before this length");
}

}  // namespace kedge
