// The responses of a step: what is requested of the engine, dynamic sampling, and records of earlier attempts.
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "kedge/algo/online/dynamic_sampling.h"
#include "kedge/algo/online/generation.h"
#include "kedge/algo/online/online_trainer.h"
#include "kedge/core/fingerprint.h"
#include "kedge/rollout/rollout_exchange.h"

namespace kedge {

GenerationWeights OnlineTrainer::hold_weights() {
  if (!resharded_) return {parts_.model, nullptr};
  const auto scope = timers_.measure("reshard");
  return {parts_.model, resharded_.get()};
}

RolloutRequest OnlineTrainer::wish(RolloutPurpose purpose, std::span<const int64_t> batch, int64_t round) const {
  const RolloutConfig& config = settings_.rollouts;
  const bool validates = purpose == kValidation;
  const LengthConfig& length = validates ? config.val_length_params.value_or(config.length_params) : config.length_params;
  const RolloutSamplingConfig& sampling = validates && config.val_sampling_params ? *config.val_sampling_params : config.sampling_params;
  return {.prompts = validates ? *parts_.validation : *parts_.prompts,
          .batch = batch,
          .num_samples = validates ? 1 : settings_.samples_per_prompt,
          .max_new = validates ? lengths_.val_max_new : lengths_.max_new,
          .min_new = length.min_length,
          .sampling = sampling,
          .logprob_temperature = config.temperature(),
          .responses = validates && val_responses_ ? *val_responses_ : responses_,
          .vocab_size = drawable_ids(parts_.tokenizer, parts_.model),
          .wants_values = !validates,
          .seed = static_cast<uint64_t>(settings_.model.seed),
          .purpose = purpose,
          .round = static_cast<uint64_t>(round)};
}

// Equal if the same answers and rewards would result again.
std::string OnlineTrainer::fingerprint_of(std::span<const int64_t> batch, const std::string& weights_before) const {
  Fingerprint print;
  print.add(weights_before);
  for (const int64_t number : {settings_.model.seed, round_, settings_.samples_per_prompt, lengths_.max_new, lengths_.max_prompt})
    print.add(number);
  for (const int64_t row : batch) print.add(row);
  print.add(settings_.identity);
  if (settings_.max_batches > 1 && settings_.drops_unfinished) print.add("unfinished=drop");  // decides which prompts are kept
  return print.hex();
}

std::optional<RolloutRows> OnlineTrainer::recorded(const RecordHeader& header, std::span<const int64_t> batch) {
  std::optional<RolloutRows> found;
  if (store_ != nullptr) {
    const auto draw = [&] {
      RolloutRows rows;
      for (int64_t i = 0; i < settings_.max_batches; ++i) {
        RolloutRows more = generate_batch(batch, i, false);
        std::move(more.begin(), more.end(), std::back_inserter(rows));
      }
      return rows;
    };
    found = store_->load({.header = header, .prompts = *parts_.prompts, .batch = batch, .draw = draw});
  }
  std::array<double, 1> is_found = {found ? 1.0 : 0.0};
  world().all_reduce(std::span<double>(is_found), Reduce::max);
  if (is_found[0] == 0) return std::nullopt;
  // Rank 0 has them all and broadcasts them.
  RolloutRows own = found ? std::move(*found) : RolloutRows();
  RolloutRows rows = exchange_rollouts(world(), own);
  std::vector<int64_t> places(own.size());
  std::iota(places.begin(), places.end(), 0);
  exchange_rewards(world(), places, rows);
  return rows;
}

// Their hash, known from the step before if there was one. For records, so that nobody needs it where rank 0 keeps none and is alone.
std::string OnlineTrainer::weights_before() {
  if (weights_hash_.empty() && (store_ != nullptr || world().size() > 1)) weights_hash_ = policy_.weights_hash();
  return weights_hash_;
}

std::vector<int64_t> OnlineTrainer::prompts_ahead() const {
  Sampler ahead = sampler_;
  std::vector<int64_t> prompts;
  for (int64_t i = 0; i < settings_.max_batches; ++i) {
    const std::vector<int64_t> batch = ahead.next();
    prompts.insert(prompts.end(), batch.begin(), batch.end());
  }
  return prompts;
}

// A prompt may come again in a later batch of the same step, and gets other random numbers there.
RolloutRows OnlineTrainer::generate_batch(std::span<const int64_t> ahead, int64_t index, bool wants_rewards) {
  const auto size = std::ssize(ahead) / settings_.max_batches;
  const auto batch = ahead.subspan(static_cast<size_t>(index * size), static_cast<size_t>(size));
  RolloutRequest wanted = wish(kTraining, batch, round_ * settings_.max_batches + index);
  if (!wants_rewards) wanted.wants_rewards = wanted.wants_values = false;
  RolloutRows rows = maker_.generate(wanted);
  if (round_ == 0 && index == 0 && wants_rewards) look_at_ends(rows);
  if (wants_rewards && settings_.max_batches > 1) {
    const auto scope = timers_.measure("critic_wait");
    maker_.take_rewards(rows);
  }
  for (RolloutRow& row : rows) row.slot += index * size;
  return rows;
}

RolloutRows OnlineTrainer::generate_dynamically(std::span<const int64_t> ahead) {
  GroupCollector groups(settings_.rollouts.num_rollout_samples, settings_.drops_unfinished);
  for (int64_t i = 0; i < settings_.max_batches && !groups.is_full(); ++i) groups.add(generate_batch(ahead, i, true));
  if (!groups.is_full() && is_first())
    short_steps_.note("step ", round_, ": in ", settings_.max_batches, " batches the responses to only ", groups.num_kept(), " of ",
                      settings_.rollouts.num_rollout_samples, " prompts differ in reward; the others of this step teach nothing");
  return groups.take();
}

OnlineStep OnlineTrainer::generate() {
  const std::vector<int64_t> ahead = prompts_ahead();
  OnlineStep step;
  const std::string weights = weights_before();
  if (store_ != nullptr) {
    step.header = {.step = round_, .fingerprint = fingerprint_of(ahead, weights), .weights_before = weights};
  }
  const bool is_dynamic = settings_.max_batches > 1;
  if (std::optional<RolloutRows> rows = recorded(step.header, ahead)) {
    step.rows = std::move(*rows);
    step.has_rewards = true;
  } else {
    const auto scope = timers_.measure("generate");
    const GenerationWeights held = hold_weights();
    step.rows = is_dynamic ? generate_dynamically(ahead) : generate_batch(ahead, 0, true);
    step.has_rewards = is_dynamic;
  }
  const int64_t num_batches = is_dynamic ? num_batches_of(step.rows, settings_.rollouts.num_rollout_samples) : 1;
  for (int64_t i = 0; i < num_batches; ++i) static_cast<void>(sampler_.next());
  dropped_samples_ += (num_batches - 1) * settings_.rollouts.num_rollout_samples;
  return step;
}

}  // namespace kedge
