#pragma once
// The interface of an online algorithm: how it scores a step's responses, the loss of a token, and its own metrics. Sampling, rewards,
// log-probabilities, updates, validation, records and checkpoints are handled by OnlineTrainer. docs/adding_an_algorithm.md shows how one
// is written.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/invariants.h"
#include "kedge/algo/online/minibatches.h"
#include "kedge/algo/online/policy.h"
#include "kedge/metrics/metrics.h"
#include "kedge/rollout/record_file.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// A step of training on its way through the phases: generate_rollouts(), score(), run_training().
struct OnlineStep {
  RolloutRows rows = {};  // the responses of all ranks
  // The rows that updates are made of, by update. Planned once: before the first update, log-probabilities from the same passes are equal
  // bit for bit.
  std::vector<Minibatch> minibatches = {};
  std::vector<int64_t> chosen = {};  // of an algorithm that chooses_rows(): their places
  Metrics metrics = {};              // results of score(), for Algorithm::metrics()
  RecordHeader header = {};          // of the step's record, if one is kept
  StepEvidence evidence = {};        // for the invariants
  bool has_rewards = false;          // the rows came from a record, with their rewards
};

// How the policy learns from a token.
struct TokenObjective {
  LossNorm norm = LossNorm::reference;
  TokenLoss loss;
  bool has_metrics = false;    // the loss also reports other metrics
  bool wants_entropy = false;  // the loss needs the policy's entropy
  Metrics constants = {};      // reported with every update as they are
};

// Every rank makes the same calls with the same rows.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // From rewards, log-probabilities and (with a critic) values: KL, baselines and advantages, and which rows train.
  virtual void score(OnlineStep& step) const = 0;
  [[nodiscard]] virtual TokenObjective objective() const = 0;
  // Metrics of a step, and of a validation: names without a prefix.
  [[nodiscard]] virtual Metrics metrics(const OnlineStep& step) const = 0;
  [[nodiscard]] virtual Metrics validation_metrics(const RolloutRows& /*rows*/) const { return {}; }

  // score() picks the rows to train on by their rewards. Log-probabilities are then not computed before the updates.
  [[nodiscard]] virtual bool chooses_rows() const { return false; }
  // Needs the values of a critic, which is trained along with the policy.
  [[nodiscard]] virtual bool has_critic() const { return false; }
  // Warnings about settings that are legal but rarely intended.
  [[nodiscard]] virtual std::vector<std::string> hints() const { return {}; }
};

// The KL of each token of the answer; 0 if there is no reference.
[[nodiscard]] std::vector<double> token_kls(const RolloutRow& row, KlEstimator estimator);

// The KL of every row that has log-probabilities of policy and reference.
void add_kl(RolloutRows& rows, KlEstimator estimator);

}  // namespace kedge
