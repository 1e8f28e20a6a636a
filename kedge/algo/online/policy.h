#pragma once
// The model that is trained online, with its optimizer: log-probabilities of answers, and updates from them. Both go through the network
// in the very same passes, so that before a step's first update they are equal bit for bit. Independent of rewards; the algorithm
// defines a token's loss.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/algo/online/minibatches.h"
#include "kedge/dist/group.h"
#include "kedge/metrics/metrics.h"
#include "kedge/model/model.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/train/optim/learner.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

struct PolicyOptions {
  OptimConfig optim;
  UpdateConfig update;
  int64_t num_updates = 0;  // the horizon of the learning rate
  bool checkpoint_activations = false;
  uint64_t seed = 0;                       // of dropout
  double temperature = 1;                  // of every log-probability and entropy, also the reference's
  std::optional<ReferenceKind> reference;  // none: there is no penalty
};

// Of the answers' tokens of one pass, row after row: [tokens], in fp64. LibTorch's fp32 exponentials and sums differ between kinds of CPU;
// what losses in fp64 give differs in digits that gradients, rounded to fp32, do not have.
struct PassTokens {
  Tensor logprobs;                    // by the policy as it is now, with gradients
  Tensor entropy;                     // the same; undefined unless requested
  Tensor previous;                    // log-probabilities before the step's updates; undefined unless the rows have them
  Tensor reference;                   // those of the reference policy; undefined unless the rows have them
  Tensor advantages;                  // of a token, or of its answer
  Tensor correction;                  // weights for a gap between generation and training; undefined unless the rows have them
  std::vector<int64_t> lengths = {};  // tokens of each row
};

// Reported for an update in addition to its loss: the mean over its tokens.
struct PassNumber {
  std::string name;
  Tensor values;            // of every token, without gradients
  double base = 0;          // distances from it are averaged, so that tokens that all have this value give exactly this value
  bool of_trained = false;  // only tokens that are trained on count
};
struct PassLoss {
  Tensor losses;  // of every token
  std::vector<PassNumber> numbers = {};

  PassLoss(Tensor given) : losses(std::move(given)) {}
  PassLoss(Tensor given, std::vector<PassNumber> told) : losses(std::move(given)), numbers(std::move(told)) {}
};
using TokenLoss = std::function<PassLoss(const PassTokens& tokens)>;

// The input of an update. Weights are by the order of the minibatch's rows, as token_weights() has them.
struct UpdateStep {
  const Minibatch& minibatch;
  std::vector<double> weights;  // of a token's loss; 0: the row is not trained on
  TokenLoss loss;
  std::vector<double> told = {};  // of a token in the metrics other than the loss, where all rows count; empty: there are none
  bool wants_entropy = false;     // for the loss
  // Of update_and_record(): called for each pass when its rows have their log-probabilities, before their loss, to set their advantages.
  std::function<void(const Pass&)> score = {};
};

// Rows by their prompts, for passes that have all responses to a prompt. With `shares` a pass computes the prompt once.
[[nodiscard]] RowGroups prompt_groups(const RolloutRows& rows, bool shares);

// By any network: fill `logprobs` and `entropy`, or `reference`, of the rows in these passes. The temperature divides the logits.
void add_policy_logprobs(const Model& model, std::span<const Pass> passes, RolloutRows& rows, double temperature = 1);
void add_reference_logprobs(const Model& reference, std::span<const Pass> passes, RolloutRows& rows, double temperature = 1);

// Not thread-safe. All ranks make the same calls. The model must outlive it.
class Policy {
 public:
  Policy(Model& model, Group group, const PolicyOptions& options);

  [[nodiscard]] bool has_reference() const { return reference_.has_value(); }
  // Fill `logprobs` and `entropy`, or `reference`, of the rows in these passes.
  void logprobs(std::span<const Pass> passes, RolloutRows& rows) const;
  void reference_logprobs(std::span<const Pass> passes, RolloutRows& rows);

  // One update; without a row to learn from, the weights and the optimizer do not change. Its metrics: loss, lr, optim_step,
  // grad_norm, and those of the loss.
  Metrics update(const UpdateStep& step, const RolloutRows& rows) { return update_seen(step, rows, nullptr); }
  // The same, and the log-probabilities of its passes are stored in `rows`, as logprobs() would.
  Metrics update_and_record(const UpdateStep& step, RolloutRows& rows) { return update_seen(step, rows, &rows); }

  // One pass of an update without the update: takes as much memory and changes nothing.
  void rehearse_update(const Pass& largest, const RolloutRows& rows);

  [[nodiscard]] int64_t num_updates() const { return learner_.num_updates(); }
  [[nodiscard]] double next_rate() const { return learner_.next_rate(); }  // the learning rate of the next update
  [[nodiscard]] bool drops_out() const;           // adapters have dropout in updates, so log-probabilities differ there
  [[nodiscard]] bool has_finite_weights() const;  // collective
  [[nodiscard]] Model& model() { return model_; }
  [[nodiscard]] const Model& model() const { return model_; }
  // Hash of every bit of the trained weights, computed once for each version of them. Collective.
  [[nodiscard]] std::string weights_hash() const;

  void save(StateSnapshot& state) const { learner_.save(state); }
  void load(const StateFiles& state) { learner_.load(state); }

 private:
  [[nodiscard]] LogprobOptions logprob_options(bool with_entropy) const;
  Metrics update_seen(const UpdateStep& step, const RolloutRows& rows, RolloutRows* seen);
  [[nodiscard]] DropoutSeed dropout_seed(int64_t row) const;
  [[nodiscard]] std::vector<Pass> update_passes(std::span<const Pass> passes) const;

  Model& model_;
  Group group_;
  PolicyOptions options_;
  std::optional<ReferencePolicy> reference_;
  Learner learner_;
  mutable std::string hash_;
  mutable std::pair<const Parameters*, int64_t> hashed_ = {};  // the parameters, and their version, that it is of
};

}  // namespace kedge
