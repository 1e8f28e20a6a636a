#include "kedge/algo/online/online_trainer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "kedge/algo/online/dynamic_sampling.h"
#include "kedge/algo/online/generation.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/algo/online/watched_update.h"
#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/random.h"
#include "kedge/dist/partition.h"
#include "kedge/model/kernels/shared_prompts.h"
#include "kedge/rollout/rollout_exchange.h"

namespace kedge {
namespace {

// What is logged of the phases of a step, in the order in which they happen.
constexpr std::array<std::string_view, 7> kPhases = {"generate",    "reshard",      "logprobs",  "init_logprobs",
                                                     "critic_wait", "rollout_time", "train_time"};

PolicyOptions policy_options(const OnlineSettings& settings, const OnlinePlan& plan, const Model& model) {
  PolicyOptions options;
  options.optim = settings.model.optim;
  options.update = settings.loop;
  options.num_updates = plan.horizon;
  options.checkpoint_activations = settings.model.activations_checkpoint_granularity == Recompute::full;
  options.seed = static_cast<uint64_t>(settings.model.seed);
  options.temperature = settings.rollouts.temperature();
  if (!settings.wants_reference) return options;
  options.reference = model.adapters() != nullptr                              ? ReferenceKind::adapters_off
                      : settings.rollouts.reference == ReferencePlace::swapped ? ReferenceKind::swapped
                                                                               : ReferenceKind::resident;
  return options;
}

OnlinePlan plan_of(const OnlineSettings& settings, const OnlineParts& parts) {
  const OnlinePlan plan = plan_online(settings, parts.prompts->size(), parts.validation != nullptr, parts.group.size());
  return parts.position ? continue_plan(plan, settings, *parts.position) : plan;
}

TimersOptions timers_options(const Model& model) {
  TimersOptions options;
  if (model.device().is_cuda()) options.synchronize = synchronize_cuda;
  return options;
}

std::unique_ptr<ReshardedModel> make_resharded(const OnlineParts& parts) {
  if (!parts.generation) return nullptr;
  return std::make_unique<ReshardedModel>(parts.model, parts.world.value_or(parts.group), parts.generation->tensor);
}

std::optional<WorkQueue> make_queue(const OnlineSettings& settings, const Group& group) {
  const WorkQueueConfig& config = settings.loop.batch_iterator;
  if (!config.use_flask) return std::nullopt;
  return WorkQueue(group, {config.port, settings.rollouts.rollout_micro_batch_size});
}

std::vector<int64_t> rows_of(std::span<const Pass> passes) {
  std::vector<int64_t> rows;
  for (const Pass& pass : passes) rows.insert(rows.end(), pass.rows.begin(), pass.rows.end());
  return rows;
}

void swap_logprobs(std::span<const int64_t> places, std::vector<std::vector<float>>& others, RolloutRows& rows) {
  for (size_t i = 0; i < places.size(); ++i) std::swap(rows[static_cast<size_t>(places[i])].logprobs, others[i]);
}

std::vector<int64_t> first_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

OnlineTrainer::OnlineTrainer(OnlineParts parts, OnlineSettings settings, std::unique_ptr<Algorithm> algorithm)
    : timers_(timers_options(parts.model)),
      parts_(std::move(parts)),
      settings_(std::move(settings)),
      algorithm_(std::move(algorithm)),
      lengths_(online_lengths(settings_, parts_.model.config().max_positions)),
      plan_(plan_of(settings_, parts_)),
      responses_(parts_.tokenizer, settings_.rollouts.sampling_params.end_strings),
      policy_(parts_.model, parts_.group, policy_options(settings_, plan_, parts_.model)),
      resharded_(make_resharded(parts_)),
      engine_(generator(), engine_config(settings_, lengths_, generator(), generating().size())),
      queue_(make_queue(settings_, parts_.group)),
      maker_(engine_, {parts_.rewards, parts_.values}, {generating(), world(), generator().parameters().options().tensor.rank() == 0},
             queue_ ? &*queue_ : nullptr),
      sampler_({.num_rows = parts_.prompts->size(),
                .batch_size = settings_.rollouts.num_rollout_samples,
                .shuffle = true,
                .seed = static_cast<uint64_t>(settings_.model.seed)},
               "model.data.data_prefix"),
      health_(settings_.loop),
      invariants_(settings_.loop.health.invariants, str("trainer.", settings_.name, ".health.invariants"), settings_.loop.health.window),
      trusts_engine_(trusts_engine(settings_.rollouts.logprobs, parts_.model.device(), resharded_ != nullptr)) {
  ensure(!algorithm_->has_critic() || parts_.values != nullptr, "the algorithm needs a critic, and there is none");
  if (!can_share_prompts(parts_.model.config(), parts_.model.device(), lengths_.context)) settings_.rollouts.share_prompts = false;
  if (algorithm_->has_critic()) critic_.emplace(parts_.values->critic(), settings_.critic_epochs);
  // With dropout an update has other log-probabilities than the policy, and so cannot record them.
  if (policy_.drops_out() && settings_.rollouts.logprobs != LogprobSource::engine) {
    if (settings_.logprob_use == LogprobUse::none) settings_.logprob_use = LogprobUse::loss;
    trusts_engine_ = false;
  }
  if (is_first())
    for (const auto& hint :
         {fewer_steps_hint(plan_.steps, settings_.loop.max_epochs, settings_.loop.max_steps, "trainer." + settings_.name),
          low_rate_hint(settings_, plan_)})
      if (hint) log_warn(*hint);
  if (is_first())
    for (const std::string& hint : algorithm_->hints()) log_warn(hint);
  check(!responses_.end_ids().empty(), "the policy's tokenizer has no end-of-text token, so no answer could end");
  if (settings_.rollouts.val_sampling_params) val_responses_.emplace(parts_.tokenizer, settings_.rollouts.val_sampling_params->end_strings);
  if (!is_first()) return;
  if (resharded_)
    log_info("generation has its own layout: before every step this rank sends ", format_bytes(resharded_->bytes_sent()),
             " of weights to others");
  if (parts_.store == nullptr && !parts_.folder.empty()) records_.emplace(parts_.folder / "rollouts", settings_.records);
  store_ = records_ ? &*records_ : parts_.store;
}

OnlineTrainer::~OnlineTrainer() = default;

LoopResult OnlineTrainer::fit(MetricsLog& log, const FitOptions& options) {
  const StopSignals signals;
  const auto begin = std::chrono::steady_clock::now();
  if (const auto checkpoint = options.resume_from == nullptr ? std::nullopt : options.resume_from->newest_sound())
    restore(*this, log, *checkpoint);
  LoopOptions loop;
  loop.steps = plan_.steps;
  loop.intervals = plan_.intervals;
  loop.time_limit = options.time_limit;
  return run_loop({*this, world(), log, options.saver, signals, begin}, loop, round_);
}

// Names of the phases as kedge plan has them.
std::string OnlineTrainer::failed_phase() const {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {{{"generate", "generate"},
                                                                                           {"logprobs", "log-probs"},
                                                                                           {"init_logprobs", "reference"},
                                                                                           {"critic_wait", "rewards"},
                                                                                           {"train_time", "update"}}};
  for (const auto& [timer, name] : kNames)
    if (timers_.interrupted() == timer) return std::string(name);
  return "";
}

void OnlineTrainer::rehearse() {
  {
    const auto scope = timers_.measure("generate");
    const GenerationWeights weights = hold_weights();
    rehearse_generation(
        engine_, generation_input(settings_, lengths_, generator().own_shape(), generator().parameters().options(), generating().size()),
        lengths_, settings_.samples_per_prompt);
  }
  num_preempted_ = engine_.stats().num_preempted;  // its prompts are longer than those that memory was planned for
  rehearse_training();
  static_cast<void>(timers_.take());
}

// One pass of the largest possible size, with prompts and answers of maximum length.
void OnlineTrainer::rehearse_training() {
  const int64_t own = settings_.model.global_batch_size / parts_.group.size();
  const bool shares = settings_.rollouts.share_prompts && settings_.rows_per_prompt > 1;
  RolloutRows rows;
  for (int64_t i = 0; i < own; ++i) {
    const int64_t slot = i / settings_.rows_per_prompt;
    // Neighbours differ, so that each prompt is shared by its own answers only.
    Rollout longest{.ids = TokenIds(static_cast<size_t>(lengths_.context), static_cast<TokenId>(slot % 2)),
                    .prompt_length = lengths_.context - lengths_.max_new};
    rows.push_back({.rollout = std::make_shared<const Rollout>(std::move(longest)), .slot = slot});
  }
  RowGroups groups = prompt_groups(rows, shares);
  groups.may_divide = true;
  const std::vector<int64_t> lengths(rows.size(), lengths_.context);
  const Pass pass = plan_passes(first_rows(own), lengths, settings_.rollouts.tokens_per_pass, groups)[0];
  if (looks_before_updates()) {
    const auto scope = timers_.measure("logprobs");
    policy_.logprobs(std::span(&pass, 1), rows);
  }
  if (policy_.has_reference()) {
    const auto scope = timers_.measure("init_logprobs");
    policy_.reference_logprobs(std::span(&pass, 1), rows);
  }
  engine_.release_for_training();
  const auto scope = timers_.measure("train_time");
  policy_.rehearse_update(pass, rows);
}

void OnlineTrainer::complete(OnlineStep& step) {
  if (!algorithm_->chooses_rows()) {
    step.minibatches = minibatches_of(step.rows, first_rows(std::ssize(step.rows)));
    add_logprobs(step);
  }
  take_rewards(step);
  if (!critic_) return;
  const auto scope = timers_.measure("critic_wait");
  parts_.values->take(world(), step.rows);
}

OnlineStep OnlineTrainer::generate_rollouts() {
  const auto scope = timers_.measure("rollout_time");
  OnlineStep step = generate();
  look_at_preemptions();
  complete(step);
  return step;
}

void OnlineTrainer::take_rewards(OnlineStep& step) {
  if (step.has_rewards) return;
  const auto scope = timers_.measure("critic_wait");
  maker_.take_rewards(step.rows);
}

void OnlineTrainer::score(OnlineStep& step) const {
  algorithm_->score(step);
  if (algorithm_->chooses_rows()) step.minibatches = minibatches_of(step.rows, step.chosen);
}

Metrics OnlineTrainer::warm_up_critic(int64_t warmup) {
  const std::vector<int64_t> batch = sampler_.next();
  OnlineStep step;
  {
    const auto scope = timers_.measure("generate");
    const GenerationWeights weights = hold_weights();
    step.rows = maker_.generate(wish(kWarmup, batch, warmup));
  }
  complete(step);
  score(step);
  train_critic(step);
  static_cast<void>(timers_.take());  // of the step's phases those of its last round are reported
  return step_metrics(step).with_prefix("train_rollouts/");
}

StepReport OnlineTrainer::train_step() {
  if (critic_) critic_->restore_once(round_);
  std::vector<Metrics> updates;
  const int64_t num_warmups = critic_ && round_ == 0 ? settings_.critic_warmup_steps : 0;
  for (int64_t warmup = 0; warmup < num_warmups; ++warmup) {
    if (critic_->learns()) {
      updates.push_back(warm_up_critic(warmup));
    } else {
      static_cast<void>(sampler_.next());  // its prompts are consumed anyway
    }
  }
  OnlineStep step = generate_rollouts();
  if (num_warmups > 0)
    sampler_.seek(settings_.rollouts.num_rollout_samples);  // the warm-up's prompts are used again: the first step took one batch
  score(step);
  if (critic_) train_critic(step);
  if (const auto loss = critic_ ? critic_->last_loss() : std::nullopt) step.metrics.set("critic_loss", *loss);
  for (Metrics& update : run_training(step)) updates.push_back(std::move(update));
  return finish_step(std::move(step), std::move(updates));
}

std::vector<Minibatch> OnlineTrainer::minibatches_of(const RolloutRows& rows, std::vector<int64_t> places) const {
  const std::vector<int64_t> order = permutation(static_cast<int64_t>(places.size()), static_cast<uint64_t>(round_));
  std::vector<int64_t> shuffled, lengths;
  for (const int64_t i : order) shuffled.push_back(places[static_cast<size_t>(i)]);
  for (const RolloutRow& row : rows) lengths.push_back(row.rollout->length());
  const bool shares = settings_.rollouts.share_prompts && settings_.rows_per_prompt > 1,
             keeps = keeps_prompts_together(settings_, lengths_, plan_);
  RowGroups groups = shares || keeps ? prompt_groups(rows, shares) : RowGroups();
  groups.may_divide = shares && !keeps;
  const BatchSizes sizes{settings_.model.global_batch_size, settings_.model.micro_batch_size, settings_.rollouts.tokens_per_pass};
  return plan_minibatches(shuffled, lengths, sizes, parts_.group.rank(), parts_.group.size(), groups);
}

bool OnlineTrainer::looks_before_updates() const {
  if (settings_.logprob_use == LogprobUse::none || trusts_engine_) return false;
  return policy_.drops_out() || !update_gives_logprobs(settings_, lengths_, plan_);
}

void OnlineTrainer::add_logprobs(OnlineStep& step) {
  RolloutRows& rows = step.rows;
  std::vector<Pass> passes;
  for (const Minibatch& minibatch : step.minibatches) passes.insert(passes.end(), minibatch.passes.begin(), minibatch.passes.end());
  if (settings_.logprob_use != LogprobUse::none && trusts_engine_) {
    for (RolloutRow& row : rows) row.logprobs = row.rollout->logprobs;
  } else if (looks_before_updates()) {
    const auto scope = timers_.measure("logprobs");
    policy_.logprobs(passes, rows);
  }
  if (policy_.has_reference()) {
    const auto scope = timers_.measure("init_logprobs");
    policy_.reference_logprobs(passes, rows);
  }
  exchange_logprobs(parts_.group, rows_of(passes), rows);
}

std::vector<Metrics> OnlineTrainer::run_training(OnlineStep& step) {
  engine_.release_for_training();
  const auto scope = timers_.measure("train_time");
  const TokenObjective objective = algorithm_->objective();
  RolloutRows& rows = step.rows;
  std::vector<int64_t> counts, all_counts;
  for (const RolloutRow& row : rows) {
    all_counts.push_back(row.rollout->response_length());
    counts.push_back(row.trains ? all_counts.back() : 0);
  }
  // Without a separate pass for log-probabilities, the first update records them.
  const bool observes = !looks_before_updates() && !policy_.drops_out();
  // What was scored without log-probabilities is scored with those of the update.
  const bool scores_again = observes && !trusts_engine_ && settings_.logprob_use != LogprobUse::none;
  const int64_t micro_size = settings_.model.micro_batch_size;
  std::vector<Metrics> updates;
  // What the first update sees is for metrics and records. Ratios of later epochs are to what its rows had before, as those of all others.
  std::vector<int64_t> seen;
  std::vector<std::vector<float>> other_logprobs;
  for (int64_t epoch = 0; epoch < settings_.epochs; ++epoch)
    for (const Minibatch& minibatch : step.minibatches) {
      UpdateStep update{.minibatch = minibatch,
                        .weights = token_weights(minibatch, counts, micro_size, objective.norm, lengths_.max_new),
                        .loss = objective.loss,
                        .wants_entropy = objective.wants_entropy};
      // NeMo-Aligner averages its metrics as it does the loss; elsewhere a mean is over tokens.
      const LossNorm told_norm = objective.norm == LossNorm::reference ? LossNorm::reference : LossNorm::tokens;
      if (objective.has_metrics) update.told = token_weights(minibatch, all_counts, micro_size, told_norm);
      if (scores_again && settings_.logprob_use == LogprobUse::prompt) update.score = [&](const Pass& pass) { score_rows(pass, rows); };
      const bool is_first = updates.empty();
      const bool is_observed = is_first && observes;
      if (is_observed) {
        seen = rows_of(minibatch.passes);
        for (const int64_t row : seen) other_logprobs.push_back(rows[static_cast<size_t>(row)].logprobs);
      }
      const Metrics metrics = is_first && invariants_.wants_update()
                                  ? watched_update(policy_, parts_.group, std::move(update), rows, is_observed, step.evidence)
                              : is_observed ? policy_.update_and_record(update, rows)
                                            : policy_.update(update, rows);
      if (store_ != nullptr) step.header.updates.push_back(metrics);
      updates.push_back(metrics.with_prefix("train_optim/"));
      updates.back().merge(objective.constants.with_prefix("train_optim/"));
      // The name that descriptions of actor and critic use.
      if (critic_) updates.back().set("train_optim/actor_loss", metrics.find("loss").value());
      if (!is_observed) continue;
      exchange_logprobs(parts_.group, seen, rows);
      swap_logprobs(seen, other_logprobs, rows);
    }
  swap_logprobs(seen, other_logprobs, rows);
  if (scores_again) algorithm_->score(step);  // now every rank knows all of them
  return updates;
}

void OnlineTrainer::score_rows(const Pass& pass, RolloutRows& rows) const {
  OnlineStep part;
  for (const int64_t row : pass.rows) part.rows.push_back(std::move(rows[static_cast<size_t>(row)]));
  algorithm_->score(part);
  for (size_t i = 0; i < pass.rows.size(); ++i) rows[static_cast<size_t>(pass.rows[i])] = std::move(part.rows[i]);
}

Metrics OnlineTrainer::step_metrics(const OnlineStep& step) {
  consumed_rollouts_ += std::ssize(step.rows);
  Metrics all = algorithm_->metrics(step);
  all.merge(answer_metrics(step.rows));
  all.set("consumed_samples", static_cast<double>(sampler_.consumed_samples()));
  all.set("consumed_rollouts", static_cast<double>(consumed_rollouts_));
  if (settings_.max_batches > 1)
    all.set("dynamic_sampling_batches", static_cast<double>(num_batches_of(step.rows, settings_.rollouts.num_rollout_samples)));
  all.set("epoch", static_cast<double>(plan_.steps.epoch_of(round_) + 1));
  return all;
}

StepReport OnlineTrainer::finish_step(OnlineStep step, std::vector<Metrics> updates) {
  StepReport report;
  report.updates = std::move(updates);
  const Metrics all = step_metrics(step);
  look_at_invariants(step, all);
  if (const auto wrong = health_.look(all))
    report.alarm = {*wrong, settings_.loop.on_unhealthy != OnUnhealthy::warn, settings_.loop.on_unhealthy == OnUnhealthy::stop};
  look_at_gap(all);
  report.metrics = all.with_prefix("train_rollouts/");
  report.metrics.merge(timers_.take(kPhases, [&](std::span<double> seconds) { world().all_reduce(seconds, Reduce::max); }));
  report.samples = {first_sample_table("train_rollouts", step.rows)};
  weights_hash_.clear();
  const std::string weights = weights_before();
  if (store_ != nullptr) {
    step.header.weights_after = weights;
    store_->save(std::move(step.header), std::move(step.rows));
  }
  ++round_;
  return report;
}

StepReport OnlineTrainer::run_validation() {
  ensure(parts_.validation != nullptr, "a validation without prompts");
  const std::vector<int64_t> batch = first_rows(std::min(settings_.rollouts.num_val_samples, parts_.validation->size()));
  RolloutRows rows;
  // What the policy generates with is also what it recomputes log-probabilities with: weights that ranks hold together are gathered once.
  std::optional<WholeWeights> whole;
  if (policy_.has_reference() && !trusts_engine_ && resharded_ == nullptr) whole.emplace(parts_.model.parameters());
  {
    const GenerationWeights weights = hold_weights();
    rows = maker_.generate(wish(kValidation, batch, 0));  // all use the same random numbers, so that metrics differ only by the policy
  }
  engine_.release_for_training();
  if (policy_.has_reference()) {
    const Share share = share_of(static_cast<int64_t>(rows.size()), parts_.group.rank(), parts_.group.size());
    std::vector<int64_t> lengths, own;
    for (const RolloutRow& row : rows) lengths.push_back(row.rollout->length());
    for (int64_t i = share.begin; i < share.end; ++i) own.push_back(i);
    const std::vector<Pass> passes = plan_passes(own, lengths, settings_.rollouts.tokens_per_pass);
    if (trusts_engine_) {
      for (RolloutRow& row : rows) row.logprobs = row.rollout->logprobs;
    } else {
      policy_.logprobs(passes, rows);
    }
    whole.reset();  // a swapped reference takes their place
    policy_.reference_logprobs(passes, rows);
    exchange_logprobs(parts_.group, own, rows);
  }
  maker_.take_rewards(rows);
  add_kl(rows, settings_.kl_estimator);
  Metrics metrics = algorithm_->validation_metrics(rows);
  if (settings_.wants_reference) metrics.set("init_policy_kl", *kl_metrics(rows).find("init_policy_kl"));
  metrics.merge(answer_metrics(rows));
  StepReport report;
  report.metrics = metrics.with_prefix("val_rollouts/");
  report.samples = {first_sample_table("val_rollouts", rows)};
  static_cast<void>(timers_.take());
  return report;
}

Counters OnlineTrainer::state_dict() const {
  Counters counters = {{"consumed_samples", sampler_.consumed_samples()},
                       {"consumed_rollouts", consumed_rollouts_},
                       {settings_.name + "_optimization_step", policy_.num_updates()}};
  if (dropped_samples_ > 0) counters["dropped_samples"] = dropped_samples_;
  return counters;
}

void OnlineTrainer::finish() {
  if (critic_) critic_->finish();
}

void OnlineTrainer::note_saved(const std::vector<int64_t>& steps) {
  if (critic_) critic_->note_saved(steps);
}

FolderWriter OnlineTrainer::save(StateSnapshot& state) const {
  if (!critic_) return save_policy(state);
  return critic_->save(state, round_, [&] { return save_policy(state); });
}

FolderWriter OnlineTrainer::save_policy(StateSnapshot& state) const {
  policy_.save(state);
  state.set("sampler", sampler_.state());
  Json health = health_.state();
  health.set("invariants", invariants_.state());
  state.set("health", std::move(health));
  state.set("trainer.round", round_);
  state.set("trainer.rollouts", consumed_rollouts_);
  state.set("trainer.dropped", dropped_samples_);
  state.set("trainer.trusts_engine", trusts_engine_);
  return save_model_state(parts_.model, state, parts_.save);
}

void OnlineTrainer::load(const StateFiles& state) {
  load_model_state(parts_.model, state);
  policy_.load(state);
  weights_hash_.clear();
  sampler_.restore(state.at("sampler"));
  health_.restore(state.at("health"));
  if (const Json* invariants = state.at("health").find("invariants")) invariants_.restore(*invariants);
  round_ = state.at("trainer.round").as_integer("trainer.round");
  consumed_rollouts_ = state.at("trainer.rollouts").as_integer("trainer.rollouts");
  if (const Json* dropped = state.find("trainer.dropped")) dropped_samples_ = dropped->as_integer("trainer.dropped");
  // A gap that was seen once is remembered; the settings may still select training's own.
  trusts_engine_ = trusts_engine_ && state.at("trainer.trusts_engine").as_bool("trainer.trusts_engine");
  if (!critic_) return;
  critic_->load(state, round_);
  // Now: what cannot be resumed must not cost the metrics after this step. A complete run leaves the critic alone.
  if (round_ < plan_.steps.max_steps) critic_->restore_once(round_);
}

FolderWriter OnlineTrainer::model_writer() const { return kedge::model_writer(parts_.model, parts_.save); }

}  // namespace kedge
