#pragma once
// The model that is trained online, with its optimizer: log-probabilities of answers, and updates from them. Both go through the network
// in the very same passes, so that before a step's first update they are equal bit for bit. Knows no rewards; what a token's loss is, the
// algorithm says.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/algo/answer_row.h"
#include "kedge/algo/minibatches.h"
#include "kedge/algo/reference_policy.h"
#include "kedge/algo/supervised.h"
#include "kedge/dist/group.h"
#include "kedge/metrics/metrics.h"
#include "kedge/model/model.h"
#include "kedge/train/optimizer.h"
#include "kedge/train/schedule.h"
#include "kedge/train/updater.h"

namespace kedge {

struct PolicyOptions {
  OptimConfig optim;
  UpdateConfig update;
  int64_t num_updates = 0;  // the horizon of the learning rate
  bool checkpoint_activations = false;
  uint64_t seed = 0;                       // of dropout
  std::optional<ReferenceKind> reference;  // none: there is no penalty
};

// Of the answers' tokens of one pass, row after row. fp32 [tokens].
struct PassTokens {
  Tensor logprobs;    // by the policy as it is now, with gradients
  Tensor previous;    // before the step's updates; undefined unless the rows have them
  Tensor advantages;  // of a token's answer
  Tensor weights;     // of a token's loss in that of the update; 0 on tokens that do not count
};
// The loss of every token.
using TokenLoss = std::function<Tensor(const PassTokens& tokens)>;

// Not thread-safe. All ranks make the same calls. The model must outlive it.
class Policy {
 public:
  Policy(Model& model, Group group, const PolicyOptions& options);

  [[nodiscard]] bool has_reference() const { return reference_.has_value(); }
  // Fill `logprobs` and `entropy`, or `reference`, of the rows in these passes.
  void logprobs(std::span<const Pass> passes, AnswerRows& rows) const;
  void reference_logprobs(std::span<const Pass> passes, AnswerRows& rows);

  // One update. `weights` are those of token_weights(). Its numbers: loss, lr, optim_step, grad_norm.
  Metrics update(const Minibatch& minibatch, std::span<const double> weights, const AnswerRows& rows, const TokenLoss& loss) {
    return update_seen(minibatch, weights, rows, loss, nullptr);
  }
  // The same, and what its passes find out on their way goes into `rows`, as logprobs() would put it there.
  Metrics observed_update(const Minibatch& minibatch, std::span<const double> weights, AnswerRows& rows, const TokenLoss& loss) {
    return update_seen(minibatch, weights, rows, loss, &rows);
  }

  [[nodiscard]] int64_t num_updates() const { return num_updates_; }
  [[nodiscard]] Model& model() { return model_; }
  [[nodiscard]] const Model& model() const { return model_; }
  // Tells weights apart: equal ones have equal prints. Looks at some of them, spread over all.
  [[nodiscard]] std::string weights_print() const;

  void save(StateSnapshot& state) const;
  void load(const StateFiles& state);

 private:
  Metrics update_seen(const Minibatch& minibatch, std::span<const double> weights, const AnswerRows& rows, const TokenLoss& loss,
                      AnswerRows* seen);
  [[nodiscard]] DropoutSeed dropout_seed(int64_t first_row) const;

  Model& model_;
  Group group_;
  PolicyOptions options_;
  std::optional<ReferencePolicy> reference_;
  Optimizer optimizer_;
  Updater updater_;
  Schedule schedule_;
  int64_t num_updates_ = 0;
};

}  // namespace kedge
