#include "kedge/critic/critic_model.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/core/random.h"
#include "kedge/critic/value_loss.h"
#include "kedge/dist/partition.h"

namespace kedge {

// Rows of one pass with the targets of their tokens, row after row. A row ends with its last trained token: what comes
// after it cannot affect what is before it. Rows without any are left out.
struct CriticModel::MicroBatch {
  int64_t index = 0;  // in its update
  std::vector<TokenIds> rows = {};
  std::vector<float> returns = {}, previous = {}, mask = {};

  void add(const CriticBatch& batch, int64_t row) {
    const auto width = static_cast<size_t>(batch.width), first = static_cast<size_t>(row) * (width - 1);
    size_t length = width - 1;
    while (length > 0 && batch.mask[first + length - 1] == 0) --length;
    if (length == 0) return;
    const int64_t* ids = batch.tokens.data() + static_cast<size_t>(row) * width;
    rows.emplace_back(ids, ids + length);
    for (size_t i = first; i < first + length; ++i) {
      // Masked values must not reach the gradient: 0 times infinity is not 0.
      const bool counts = batch.mask[i] != 0;
      returns.push_back(counts ? batch.returns[i] : 0);
      previous.push_back(counts ? batch.previous[i] : 0);
      mask.push_back(counts ? 1 : 0);
    }
  }
};

CriticModel::CriticModel(std::unique_ptr<Model> model, CriticOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      learner_({options_.optim, options_.update, options_.max_steps, "critic.step"}, model_->trained(), options_.group) {
  check(options_.global_batch_size % options_.micro_batch_size == 0, "model.global_batch_size: ", options_.global_batch_size,
        " rows do not divide into micro-batches of ", options_.micro_batch_size);
  const size_t num_labels = static_cast<size_t>(model_->head().num_labels), num_weights = options_.attribute_weights.size();
  check(num_weights == 0 || num_weights == num_labels, "model.regression.attribute_weights: ", num_weights, " weights for ", num_labels,
        " labels");
  if (!options_.rewards) return;
  static_cast<void>(RewardScorer(*model_, *options_.rewards));  // rejects what does not fit
  start_.emplace(*model_, model_->adapters() != nullptr ? ReferenceKind::adapters_off : options_.reward_model);
}

Tensor CriticModel::token_values(const PackedBatch& batch, const PassOptions& pass) const {
  const Tensor scores = token_scores(*model_, batch, pass);
  return options_.standardization.apply(merge_labels(scores, options_.attribute_weights, "model.regression.attribute_weights"));
}

Tensor CriticModel::values(std::span<const TokenIds> rows) const {
  const NoGrad no_grad;
  const WholeWeights whole(model_->parameters());
  std::vector<Tensor> parts = {at::empty({0})};  // a rank may have no rows
  while (!rows.empty()) {
    const size_t count = rows_within(rows, options_.forward_tokens);
    parts.push_back(token_values(pack_rows(rows.first(count), model_->device()), {}).to(at::kCPU));
    rows = rows.subspan(count);
  }
  return at::cat(parts).contiguous();
}

Tensor CriticModel::rewards(std::span<const TokenIds> rows) {
  ensure(gives_rewards(), "rewards of a critic that returns none");
  Tensor rewards;
  start_->with([&](const Model& start) { rewards = RewardScorer(start, *options_.rewards).score(rows); });
  return rewards;
}

// A scalar.
Tensor CriticModel::loss_of(const MicroBatch& micro) const {
  PassOptions pass;
  pass.checkpoint = options_.checkpoint_activations;
  const Adapters* adapters = model_->adapters();
  if (adapters != nullptr && adapters->config().adapter_dropout > 0)
    pass.dropout_seed = Random::stream_of({options_.seed, static_cast<uint64_t>(step()), static_cast<uint64_t>(micro.index)});
  const auto on_device = [&](const std::vector<float>& numbers) { return at::tensor(numbers).unsqueeze(0).to(model_->device()); };
  const Tensor values = token_values(pack_rows(micro.rows, model_->device()), pass).unsqueeze(0);
  return value_loss(values, {on_device(micro.previous), on_device(micro.returns), on_device(micro.mask)}, options_.loss_clip_val);
}

// Those of an update in which something is trained.
std::vector<CriticModel::MicroBatch> CriticModel::micro_batches(const CriticBatch& batch, int64_t first_row) const {
  std::vector<MicroBatch> micros;
  for (int64_t index = 0; index < options_.global_batch_size / options_.micro_batch_size; ++index) {
    MicroBatch micro{.index = index};
    const int64_t first = first_row + index * options_.micro_batch_size;
    for (int64_t row = first; row < std::min(first + options_.micro_batch_size, batch.num_rows); ++row) micro.add(batch, row);
    if (!micro.rows.empty()) micros.push_back(std::move(micro));
  }
  return micros;
}

Metrics CriticModel::update(const CriticBatch& batch, int64_t first_row) {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t num_micros = options_.global_batch_size / options_.micro_batch_size;
  const std::vector<MicroBatch> micros = micro_batches(batch, first_row);
  std::vector<int64_t> sizes;
  for (const MicroBatch& micro : micros) sizes.push_back(std::ssize(micro.mask));
  const std::vector<int64_t> own = share_by_size(sizes, options_.group.rank(), options_.group.size());
  const int64_t num_passes = learner_.num_passes(std::ssize(own));
  learner_.zero_gradients();
  std::vector<double> losses(micros.size());
  for (const int64_t i : own) {
    const Tensor loss = loss_of(micros[static_cast<size_t>(i)]);
    backward(loss / static_cast<double>(num_micros));
    model_->complete_pass();
    losses[static_cast<size_t>(i)] = loss.item<double>();
  }
  for (int64_t pass = std::ssize(own); pass < num_passes; ++pass) model_->complete_pass();
  const LearnerUpdate update = learner_.update();
  options_.group.all_reduce(std::span<double>(losses), Reduce::sum);  // of each, one rank has something else than 0
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  Metrics metrics{{"train/loss", losses.empty() ? 0 : sum / static_cast<double>(losses.size())},
                  {"train/lr", update.lr},
                  {"train/grad_norm", update.grad_norm}};
  if (update.num_skipped > 0) metrics.set("train/skipped_updates", static_cast<double>(update.num_skipped));
  if (model_->device().is_cuda()) synchronize_cuda();
  metrics.set("train/step_time", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return metrics;
}

std::vector<Metrics> CriticModel::train(const CriticBatch& batch) {
  std::vector<Metrics> all;
  for (int64_t row = 0; row < batch.num_rows; row += options_.global_batch_size) all.push_back(update(batch, row));
  return all;
}

std::string CriticModel::settings() const {
  OptimConfig optim = options_.optim;
  UpdateConfig update = options_.update;
  Fingerprint settings;
  settings.add(to_json(section_node(describe(optim))).dump());
  settings.add(to_json(section_node(describe(update))).dump());
  for (const int64_t number : {options_.micro_batch_size, options_.global_batch_size, options_.max_steps}) settings.add(number);
  settings.add(static_cast<int64_t>(options_.seed));
  settings.add(shortest(options_.loss_clip_val));
  if (options_.standardization.enable) settings.add(shortest(options_.standardization.mean) + "/" + shortest(options_.standardization.std));
  for (const double weight : options_.attribute_weights) settings.add(shortest(weight));
  if (options_.group.size() > 1) settings.add(static_cast<int64_t>(options_.group.size()));  // sums over ranks have another order
  return settings.hex();
}

FolderWriter CriticModel::save(StateSnapshot& state) const {
  learner_.save(state);
  return save_model_state(*model_, state, options_.folder);
}

void CriticModel::load(const StateFiles& state) {
  load_model_state(*model_, state);
  learner_.load(state);
}

}  // namespace kedge
