#include "kedge/algo/policy.h"

#include <algorithm>
#include <array>

#include "kedge/algo/policy_losses.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/random.h"
#include "kedge/data/fingerprint.h"

namespace kedge {
namespace {

// The rows of a pass as the network takes them: every token but the last of a row goes in, and the answers' tokens are predicted.
struct PassInput {
  PackedBatch batch;
  PredictedTokens predicted;
  std::vector<int64_t> counts;  // tokens of the answers, by row
};

PassInput input_of(const Pass& pass, const AnswerRows& rows, at::Device device) {
  std::vector<TokenIds> inputs;
  std::vector<int64_t> places, targets;
  PassInput input;
  int64_t begin = 0;
  for (const int64_t index : pass.rows) {
    const Rollout& rollout = *rows[static_cast<size_t>(index)].rollout;
    for (int64_t i = rollout.prompt_length; i < rollout.length(); ++i) {
      places.push_back(begin + i - 1);
      targets.push_back(rollout.ids[static_cast<size_t>(i)]);
    }
    input.counts.push_back(rollout.response_length());
    inputs.emplace_back(rollout.ids.begin(), rollout.ids.end() - 1);
    begin += rollout.length() - 1;
  }
  input.batch = pack_rows(inputs, device);
  input.predicted = {at::tensor(places).to(device), at::tensor(targets).to(device)};
  return input;
}

std::vector<float> numbers_of(const Tensor& tensor) {
  const Tensor host = tensor.to(at::kCPU).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

Tensor tensor_of(const std::vector<float>& values, at::Device device) { return at::tensor(values).to(device); }

// Cuts the numbers of a pass into those of its rows.
template <typename Use>
void by_row(const Pass& pass, const PassInput& input, std::span<const float> numbers, Use&& use) {
  size_t begin = 0;
  for (size_t i = 0; i < pass.rows.size(); ++i) {
    const auto count = static_cast<size_t>(input.counts[i]);
    use(static_cast<size_t>(pass.rows[i]), numbers.subspan(begin, count));
    begin += count;
  }
}

void put_logprobs(const Pass& pass, const PassInput& input, const TokenLogprobs& found, AnswerRows& rows) {
  by_row(pass, input, numbers_of(found.logprobs.detach()),
         [&](size_t row, std::span<const float> numbers) { rows[row].logprobs.assign(numbers.begin(), numbers.end()); });
  by_row(pass, input, numbers_of(found.entropy.detach()), [&](size_t row, std::span<const float> numbers) {
    double sum = 0;
    for (const float number : numbers) sum += static_cast<double>(number);
    rows[row].entropy = numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
  });
}

}  // namespace

Policy::Policy(Model& model, Group group, const PolicyOptions& options)
    : model_(model),
      group_(std::move(group)),
      options_(options),
      optimizer_(options.optim, model.trained(), group_),
      updater_(options_.update, optimizer_, model.trained(), group_),
      schedule_(options.optim.sched, options.optim.lr, options.num_updates, "model.optim.sched") {
  if (options.reference) reference_.emplace(model, *options.reference);
}

void Policy::logprobs(std::span<const Pass> passes, AnswerRows& rows) const {
  const NoGrad no_grad;
  for (const Pass& pass : passes) {
    const PassInput input = input_of(pass, rows, model_.device());
    put_logprobs(pass, input, model_logprobs(model_, input.batch, input.predicted, {.entropy = true}), rows);
  }
}

void Policy::reference_logprobs(std::span<const Pass> passes, AnswerRows& rows) {
  ensure(reference_.has_value(), "log-probabilities of a reference that is not there");
  reference_->with([&](const Model& reference) {
    for (const Pass& pass : passes) {
      const PassInput input = input_of(pass, rows, reference.device());
      by_row(pass, input, numbers_of(model_logprobs(reference, input.batch, input.predicted).logprobs),
             [&](size_t row, std::span<const float> numbers) { rows[row].reference.assign(numbers.begin(), numbers.end()); });
    }
  });
}

// A function of the place in the run alone, so that it is the same on any number of ranks and after a resume.
DropoutSeed Policy::dropout_seed(int64_t first_row) const {
  const Adapters* adapters = model_.adapters();
  if (adapters == nullptr || adapters->config().adapter_dropout == 0) return std::nullopt;
  return Random::stream_of({options_.seed, static_cast<uint64_t>(num_updates_), static_cast<uint64_t>(first_row)});
}

Metrics Policy::update_seen(const Minibatch& minibatch, std::span<const double> weights, const AnswerRows& rows, const TokenLoss& loss,
                            AnswerRows* seen) {
  const at::Device device = model_.device();
  std::vector<double> weight_of(rows.size(), 0);
  for (size_t i = 0; i < minibatch.rows.size(); ++i) weight_of[static_cast<size_t>(minibatch.rows[i])] = weights[i];
  optimizer_.zero_gradients();
  Tensor sum = at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(device));
  for (const Pass& pass : minibatch.passes) {
    std::vector<float> token_weights, advantages, previous;
    for (const int64_t index : pass.rows) {
      const AnswerRow& row = rows[static_cast<size_t>(index)];
      const auto count = static_cast<size_t>(row.rollout->response_length());
      const auto weight = static_cast<float>(weight_of[static_cast<size_t>(index)]);
      token_weights.insert(token_weights.end(), count, weight);
      // That of a row that does not count may be no number, and 0 times it would spoil the gradient.
      advantages.insert(advantages.end(), count, weight == 0 ? 0.0F : static_cast<float>(row.advantage));
      previous.insert(previous.end(), row.logprobs.begin(), row.logprobs.end());
    }
    if (std::all_of(token_weights.begin(), token_weights.end(), [](float weight) { return weight == 0; })) {
      if (seen != nullptr) logprobs(std::span(&pass, 1), *seen);  // it teaches nothing, but all rows are looked at
      continue;
    }
    const PassInput input = input_of(pass, rows, device);
    PassOptions options;
    options.checkpoint = options_.checkpoint_activations;
    options.dropout_seed = dropout_seed(pass.rows[0]);
    const TokenLogprobs found = model_logprobs(model_, input.batch, input.predicted, {.entropy = seen != nullptr}, options);
    PassTokens tokens;
    tokens.logprobs = found.logprobs;
    tokens.weights = tensor_of(token_weights, device);
    tokens.advantages = tensor_of(advantages, device);
    if (!previous.empty()) tokens.previous = tensor_of(previous, device);
    const Tensor part = weighted_sum(loss(tokens), tokens.weights);
    backward(part);
    if (seen != nullptr) put_logprobs(pass, input, found, *seen);
    sum += part.detach().to(at::kDouble);
  }
  const double lr = schedule_.rate(num_updates_);
  const UpdateResult result = updater_.apply(lr);
  std::array<double, 1> total = {sum.item<double>()};
  group_.all_reduce(std::span<double>(total), Reduce::sum);
  Metrics metrics = {{"loss", total[0]}, {"lr", lr}, {"optim_step", static_cast<double>(num_updates_)}, {"grad_norm", result.grad_norm}};
  if (updater_.num_skipped() > 0) metrics.set("skipped_updates", static_cast<double>(updater_.num_skipped()));
  ++num_updates_;
  return metrics;
}

std::string Policy::weights_print() const {
  constexpr int64_t kLookedAt = 65536;
  const Tensor weights = model_.trained().flat_master().detach();
  const int64_t stride = std::max<int64_t>(1, weights.numel() / kLookedAt);
  const Tensor some = weights.slice(0, 0, weights.numel(), stride).to(at::kCPU).to(at::kFloat).contiguous();
  Fingerprint print;
  print.add(std::string_view(static_cast<const char*>(some.const_data_ptr()), static_cast<size_t>(some.nbytes())));
  return print.hex();
}

void Policy::save(StateSnapshot& state) const {
  optimizer_.save(state);
  updater_.save(state);
  state.set("policy.updates", num_updates_);
}

void Policy::load(const StateFiles& state) {
  optimizer_.load(state);
  updater_.load(state);
  num_updates_ = state.at("policy.updates").as_integer("policy.updates");
}

}  // namespace kedge
