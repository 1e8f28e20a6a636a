#pragma once
// A critic: a network that gives every token a value, and learns values from returns. Has its optimizer and its place in the schedule.
// The initial network may be a reward model, which then also returns rewards, always the same. Independent of requests and checkpoints on
// disk.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/critic/critic_batch.h"
#include "kedge/metrics/metrics.h"
#include "kedge/reward/reward_scorer.h"
#include "kedge/text/tokenizer/tokenizer.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/optim/learner.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

struct CriticOptions {
  int64_t micro_batch_size = 1, global_batch_size = 64;
  int64_t forward_tokens = 4096;  // of one pass where nothing is trained; a longer row is computed alone
  double loss_clip_val = 0.2;
  Standardization standardization = {};        // of values
  std::vector<double> attribute_weights = {};  // if the head has several outputs; empty: their mean
  OptimConfig optim = {};
  UpdateConfig update = {};
  int64_t max_steps = 10000;  // the horizon of the schedule
  bool checkpoint_activations = false;
  uint64_t seed = 1234;                                  // of adapters' dropout
  std::optional<RewardScorerOptions> rewards = {};       // of the initial model; none: values only
  ReferenceKind reward_model = ReferenceKind::resident;  // how that one is stored; with adapters it is always the network without them
  ModelFolderOptions folder = {};                        // of checkpoints
  Group group = Group::single();                         // the ranks that hold the network and train it together
};

// Not thread-safe. Ranks that hold it together make the same calls, but for the rows of values().
class CriticModel {
 public:
  // UsageError for settings that are inconsistent or do not fit the model, which has a score head and is trainable. The reward model is the
  // model as it is now.
  CriticModel(std::unique_ptr<Model> model, CriticOptions options);

  // fp32 [tokens] in host memory, row after row: the critic's value after each token. Every row has at least one token. Ranks call it
  // together, each for its own rows, or for none.
  [[nodiscard]] Tensor values(std::span<const TokenIds> rows) const;
  // fp32 [rows, 1] in host memory, unaffected by training or loading: the same bits as a RewardScorer of the initial model.
  [[nodiscard]] bool gives_rewards() const { return start_.has_value(); }
  [[nodiscard]] Tensor rewards(std::span<const TokenIds> rows);

  // One update for every global_batch_size rows, in their order; the last ones may be fewer. Metrics of each update: "train/loss", ...
  // Needs at least one row; ids are inside the vocabulary and rows no longer than the network can read. Ranks are given the same rows, and
  // divide the micro-batches among them.
  [[nodiscard]] std::vector<Metrics> train(const CriticBatch& batch);

  [[nodiscard]] int64_t step() const { return learner_.num_updates(); }  // updates so far
  // Differs if the same rows would be trained on differently.
  [[nodiscard]] std::string settings() const;
  [[nodiscard]] const Model& model() const { return *model_; }

  // As of a Trainer: all that the next update depends on, and what writes the model's folder.
  [[nodiscard]] FolderWriter save(StateSnapshot& state) const;
  void load(const StateFiles& state);

 private:
  [[nodiscard]] Tensor token_values(const PackedBatch& batch, const PassOptions& pass) const;
  struct MicroBatch;
  [[nodiscard]] Tensor loss_of(const MicroBatch& micro) const;
  [[nodiscard]] std::vector<MicroBatch> micro_batches(const CriticBatch& batch, int64_t first_row) const;
  [[nodiscard]] Metrics update(const CriticBatch& batch, int64_t first_row);

  std::unique_ptr<Model> model_;
  CriticOptions options_;
  std::optional<ReferencePolicy> start_;
  Learner learner_;
};

}  // namespace kedge
