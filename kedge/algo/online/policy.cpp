#include "kedge/algo/online/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>

#include "kedge/algo/online/policy_losses.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/random.h"
#include "kedge/model/kernels/shared_prompts.h"
#include "kedge/train/checkpoint/weights_hash.h"
#include "kedge/train/optim/gradient_norm.h"

namespace kedge {
namespace {

// The rows of a pass as the network takes them: every token but the last of a row goes in, and the answers' tokens are predicted.
struct PassInput {
  PackedBatch batch;
  PredictedTokens predicted;
  std::vector<int64_t> counts;  // tokens of the answers, by row
};

PassInput input_of_rows(const Pass& pass, const RolloutRows& rows, at::Device device) {
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

// The prompt's last token goes with every answer, so that each predicted token has a place of its own.
PassInput input_of_prompts(const Pass& pass, const RolloutRows& rows, at::Device device) {
  std::vector<PromptAnswers> prompts;
  PassInput input;
  for (const int64_t index : pass.rows) {
    const Rollout& rollout = *rows[static_cast<size_t>(index)].rollout;
    const auto num_shared = static_cast<size_t>(rollout.prompt_length - 1);
    input.counts.push_back(rollout.response_length());
    if (rollout.response_length() == 0) continue;  // nothing is predicted
    const std::span<const TokenId> ids = rollout.ids, prompt = ids.first(num_shared);
    if (prompts.empty() || !std::ranges::equal(prompts.back().prompt, prompt)) prompts.push_back({prompt, {}});
    prompts.back().answers.push_back(ids.subspan(num_shared, ids.size() - 1 - num_shared));
  }
  if (prompts.empty()) return input_of_rows(pass, rows, device);
  PackedAnswers packed = pack_answers(prompts, device);
  std::vector<int64_t> places, targets;
  for (size_t p = 0; p < prompts.size(); ++p)
    for (size_t a = 0; a < prompts[p].answers.size(); ++a)
      for (int64_t i = 0; i < std::ssize(prompts[p].answers[a]); ++i) places.push_back(packed.starts[p][a] + i);
  for (const int64_t index : pass.rows) {
    const Rollout& rollout = *rows[static_cast<size_t>(index)].rollout;
    targets.insert(targets.end(), rollout.ids.begin() + rollout.prompt_length, rollout.ids.end());
  }
  input.batch = std::move(packed.batch);
  input.predicted = {at::tensor(places).to(device), at::tensor(targets).to(device)};
  return input;
}

PassInput input_of(const Pass& pass, const RolloutRows& rows, at::Device device) {
  return pass.shares_prompts ? input_of_prompts(pass, rows, device) : input_of_rows(pass, rows, device);
}

std::vector<float> numbers_of(const Tensor& tensor) {
  const Tensor host = tensor.to(at::kCPU).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

Tensor tensor_of(const std::vector<float>& values, at::Device device) { return at::tensor(values, at::kDouble).to(device); }

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

void put_logprobs(const Pass& pass, const PassInput& input, const TokenLogprobs& found, RolloutRows& rows) {
  by_row(pass, input, numbers_of(found.logprobs.detach()),
         [&](size_t row, std::span<const float> numbers) { rows[row].logprobs.assign(numbers.begin(), numbers.end()); });
  by_row(pass, input, numbers_of(found.entropy.detach()), [&](size_t row, std::span<const float> numbers) {
    double sum = 0;
    for (const float number : numbers) sum += static_cast<double>(number);
    rows[row].entropy = numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
  });
}

// Weights by the place of their row in the step, 0 for rows that are not in the minibatch.
std::vector<double> by_place(const Minibatch& minibatch, std::span<const double> weights, size_t num_rows) {
  std::vector<double> placed(num_rows, 0);
  for (size_t i = 0; i < weights.size(); ++i) placed[static_cast<size_t>(minibatch.rows[i])] = weights[i];
  return placed;
}

std::vector<float> token_weights_of(const Pass& pass, const RolloutRows& rows, std::span<const double> weights) {
  std::vector<float> all;
  for (const int64_t index : pass.rows)
    all.insert(all.end(), static_cast<size_t>(rows[static_cast<size_t>(index)].rollout->response_length()),
               static_cast<float>(weights[static_cast<size_t>(index)]));
  return all;
}

PassTokens tokens_of(const Pass& pass, const RolloutRows& rows, std::span<const double> weights, const TokenLogprobs& found) {
  std::vector<float> advantages, previous, reference, correction;
  std::vector<int64_t> lengths;
  bool is_corrected = false;
  for (const int64_t index : pass.rows) {
    const RolloutRow& row = rows[static_cast<size_t>(index)];
    const auto count = static_cast<size_t>(row.rollout->response_length());
    lengths.push_back(row.rollout->response_length());
    // Those of a row that does not count may be NaN, and 0 times NaN would corrupt the gradient.
    if (weights[static_cast<size_t>(index)] == 0) {
      advantages.insert(advantages.end(), count, 0.0F);
    } else if (row.advantages.empty()) {
      advantages.insert(advantages.end(), count, static_cast<float>(row.advantage));
    } else {
      advantages.insert(advantages.end(), row.advantages.begin(), row.advantages.end());
    }
    previous.insert(previous.end(), row.logprobs.begin(), row.logprobs.end());
    reference.insert(reference.end(), row.reference.begin(), row.reference.end());
    is_corrected = is_corrected || !row.correction.empty();
    correction.insert(correction.end(), row.correction.begin(), row.correction.end());
    correction.resize(advantages.size(), 1.0F);
  }
  const at::Device device = found.logprobs.device();
  PassTokens tokens;
  tokens.logprobs = found.logprobs.to(at::kDouble);
  if (found.entropy.defined()) tokens.entropy = found.entropy.to(at::kDouble);
  tokens.advantages = tensor_of(advantages, device);
  tokens.lengths = std::move(lengths);
  if (!previous.empty()) tokens.previous = tensor_of(previous, device);
  if (!reference.empty()) tokens.reference = tensor_of(reference, device);
  if (is_corrected) tokens.correction = tensor_of(correction, device);
  return tokens;
}

// The metrics of an update, summed over its passes on the device, and over ranks at the end.
class UpdateSums {
 public:
  explicit UpdateSums(at::Device device) : options_(at::TensorOptions().dtype(at::kDouble).device(device)) { sum_of("loss", 0); }

  void add(std::string_view name, const Tensor& part) { sum_of(name, 0) += part; }
  void add(const PassNumber& number, const Tensor& weights) {
    sum_of(number.name, number.base) += weighted_sum(number.values - number.base, weights);
  }
  [[nodiscard]] Metrics take(const Group& group) {
    const Metrics bases = bases_of_all(group);
    std::vector<double> totals;
    for (const auto& [name, base] : bases) totals.push_back(sum_of(name, base).item<double>());
    group.all_reduce(std::span<double>(totals), Reduce::sum);
    Metrics metrics;
    auto total = totals.begin();
    for (const auto& [name, base] : bases) metrics.set(name, base + *total++);
    return metrics;
  }

 private:
  struct Sum {
    std::string name;
    double base;
    Tensor total;
  };
  // The names of all ranks and their bases: a rank without passes has met none but the loss.
  [[nodiscard]] Metrics bases_of_all(const Group& group) const {
    Json own{Json::Object{}};
    for (const Sum& sum : sums_) own.append(sum.name, Json(sum.base));
    Metrics bases;
    for (const std::string& names : group.all_gather(own.dump_compact())) {
      const Json parsed = Json::parse(names);
      for (const auto& [name, base] : parsed.as_object("metrics")) bases.set(name, base.as_number(name));
    }
    return bases;
  }
  Tensor& sum_of(std::string_view name, double base) {
    const auto found = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& sum) { return sum.name == name; });
    if (found != sums_.end()) return found->total;
    return sums_.emplace_back(Sum{std::string(name), base, at::zeros({1}, options_)}).total;
  }

  at::TensorOptions options_;
  std::vector<Sum> sums_;
};

// After a pass, however it ends, other ranks are given what they need of this one.
class PassCompletion {
 public:
  explicit PassCompletion(const Model& model) : model_(model) {}
  ~PassCompletion() noexcept(false) {
    if (std::uncaught_exceptions() == 0) model_.complete_pass();
  }
  PassCompletion(const PassCompletion&) = delete;
  PassCompletion& operator=(const PassCompletion&) = delete;

 private:
  const Model& model_;
};

}  // namespace

RowGroups prompt_groups(const RolloutRows& rows, bool shares) {
  RowGroups groups;
  for (const RolloutRow& row : rows) {
    groups.groups.push_back(row.slot);
    if (shares) groups.shared.push_back(row.rollout->prompt_length - 1);
  }
  return groups;
}

void add_policy_logprobs(const Model& model, std::span<const Pass> passes, RolloutRows& rows, double temperature) {
  const NoGrad no_grad;
  for (const Pass& pass : passes) {
    const PassInput input = input_of(pass, rows, model.device());
    put_logprobs(pass, input, model_logprobs(model, input.batch, input.predicted, {.entropy = true, .temperature = temperature}), rows);
  }
}

void add_reference_logprobs(const Model& reference, std::span<const Pass> passes, RolloutRows& rows, double temperature) {
  const NoGrad no_grad;
  for (const Pass& pass : passes) {
    const PassInput input = input_of(pass, rows, reference.device());
    by_row(pass, input, numbers_of(model_logprobs(reference, input.batch, input.predicted, {.temperature = temperature}).logprobs),
           [&](size_t row, std::span<const float> numbers) { rows[row].reference.assign(numbers.begin(), numbers.end()); });
  }
}

Policy::Policy(Model& model, Group group, const PolicyOptions& options)
    : model_(model),
      group_(std::move(group)),
      options_(options),
      learner_({options.optim, options.update, options.num_updates, "policy.updates"}, model.trained(), group_) {
  if (options.reference) reference_.emplace(model, *options.reference);
}

LogprobOptions Policy::logprob_options(bool with_entropy) const { return {.entropy = with_entropy, .temperature = options_.temperature}; }

void Policy::logprobs(std::span<const Pass> passes, RolloutRows& rows) const {
  const WholeWeights whole(model_.parameters());
  add_policy_logprobs(model_, passes, rows, options_.temperature);
}

void Policy::reference_logprobs(std::span<const Pass> passes, RolloutRows& rows) {
  ensure(reference_.has_value(), "log-probabilities of a reference that does not exist");
  reference_->with([&](const Model& reference) { add_reference_logprobs(reference, passes, rows, options_.temperature); });
}

bool Policy::drops_out() const { return model_.adapters() != nullptr && model_.adapters()->config().adapter_dropout > 0; }

// A function of the position in the run only, so that it is the same on any number of ranks and after a resume.
DropoutSeed Policy::dropout_seed(int64_t row) const {
  if (!drops_out()) return std::nullopt;
  return Random::stream_of({options_.seed, static_cast<uint64_t>(num_updates()), static_cast<uint64_t>(row)});
}

// With dropout every row is a separate pass: the mask of a row must not depend on other rows, which ranks and
// tokens_per_pass decide.
std::vector<Pass> Policy::update_passes(std::span<const Pass> passes) const {
  if (!drops_out()) return {passes.begin(), passes.end()};
  std::vector<Pass> alone;
  for (const Pass& pass : passes)
    for (const int64_t row : pass.rows) alone.push_back({{row}});
  return alone;
}

Metrics Policy::update_seen(const UpdateStep& step, const RolloutRows& rows, RolloutRows* seen) {
  ensure(seen != nullptr || !step.score, "rows that are scored in an update that does not record them");
  const std::vector<double> weights = by_place(step.minibatch, step.weights, rows.size()),
                            told = by_place(step.minibatch, step.told, rows.size());
  learner_.zero_gradients();
  UpdateSums sums(model_.device());
  const std::vector<Pass> passes = update_passes(step.minibatch.passes);
  const int64_t num_passes = learner_.num_passes(std::ssize(passes));
  for (const Pass& pass : passes) {
    const PassCompletion completion(model_);
    const Tensor own = tensor_of(token_weights_of(pass, rows, weights), model_.device());
    const bool trains =
        std::any_of(pass.rows.begin(), pass.rows.end(), [&](int64_t row) { return weights[static_cast<size_t>(row)] != 0; });
    // A row that teaches nothing is computed if all rows are.
    if (!trains && step.told.empty()) {
      if (seen != nullptr) add_policy_logprobs(model_, std::span(&pass, 1), *seen, options_.temperature);
      continue;
    }
    std::optional<NoGrad> no_grad;
    if (!trains) no_grad.emplace();
    const PassInput input = input_of(pass, rows, model_.device());
    PassOptions options;
    options.checkpoint = options_.checkpoint_activations;
    options.dropout_seed = dropout_seed(pass.rows[0]);
    const TokenLogprobs found =
        model_logprobs(model_, input.batch, input.predicted, logprob_options(seen != nullptr || step.wants_entropy), options);
    if (step.score) {
      put_logprobs(pass, input, found, *seen);
      step.score(pass);
    }
    const PassLoss loss = step.loss(tokens_of(pass, rows, weights, found));
    const Tensor part = weighted_sum(loss.losses, own);
    if (trains) backward(part);
    sums.add("loss", part.detach());
    if (!step.told.empty()) {
      const Tensor all = tensor_of(token_weights_of(pass, rows, told), model_.device());
      for (const PassNumber& number : loss.numbers) sums.add(number, number.of_trained ? own : all);
    }
    // After the loss: until then rows may have those of the engine, which the loss compares with.
    if (seen != nullptr && !step.score) put_logprobs(pass, input, found, *seen);
  }
  for (int64_t pass = std::ssize(passes); pass < num_passes; ++pass) model_.complete_pass();
  // Without a row to learn from, momentum and decay alone would move the weights.
  const bool learns = std::any_of(step.weights.begin(), step.weights.end(), [](double weight) { return weight != 0; });
  const LearnerUpdate update = learner_.update(learns);
  Metrics metrics = sums.take(group_);
  metrics.set("lr", update.lr);
  metrics.set("optim_step", static_cast<double>(update.index));
  metrics.set("grad_norm", update.grad_norm);
  if (update.num_skipped > 0) metrics.set("skipped_updates", static_cast<double>(update.num_skipped));
  return metrics;
}

void Policy::rehearse_update(const Pass& largest, const RolloutRows& rows) {
  const Pass pass = update_passes(std::span(&largest, 1))[0];
  const PassInput input = input_of(pass, rows, model_.device());
  PassOptions options;
  options.checkpoint = options_.checkpoint_activations;
  options.dropout_seed = dropout_seed(pass.rows[0]);
  backward(model_logprobs(model_, input.batch, input.predicted, logprob_options(true), options).logprobs.sum());
  model_.complete_pass();
  learner_.zero_gradients();
}

bool Policy::has_finite_weights() const {
  std::array<double, 1> sum = {0};
  // Squares of fp32 numbers have room in fp64.
  for (const Parameters::OwnPart& part : model_.trained().own_parts()) sum[0] += leaf_sums(part.master).sum().item<double>();
  group_.all_reduce(std::span<double>(sum), Reduce::sum);
  const TensorRanks& tensor = model_.trained().options().tensor;
  if (tensor.is_split()) tensor.group().all_reduce(std::span<double>(sum), Reduce::sum);
  return std::isfinite(sum[0]);
}

std::string Policy::weights_hash() const {
  const std::pair<const Parameters*, int64_t> now(&model_.trained(), model_.trained().version());
  if (hashed_ != now) hash_ = kedge::weights_hash(model_.trained()), hashed_ = now;
  return hash_;
}

}  // namespace kedge
