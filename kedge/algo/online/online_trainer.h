#pragma once
// What the online trainers share: a step's answers from the policy's own engine, their log-probabilities and rewards, validation, records,
// health, and all of it in a checkpoint. What is learned from the answers, each algorithm says in a file of its own.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/algo/online/health.h"
#include "kedge/algo/online/minibatches.h"
#include "kedge/algo/online/online_plan.h"
#include "kedge/algo/online/policy.h"
#include "kedge/data/files/sampler.h"
#include "kedge/engine/engine_memory.h"
#include "kedge/metrics/timer.h"
#include "kedge/rollout/answer_row.h"
#include "kedge/rollout/rollout_maker.h"
#include "kedge/rollout/rollout_records.h"
#include "kedge/rollout/value_desk.h"
#include "kedge/rollout/work_queue.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/loop.h"

namespace kedge {

// What an online trainer works with. Everything must outlive it.
struct OnlineParts {
  Model& model;
  const Tokenizer& tokenizer;
  RewardSource& rewards;
  ValueDesk* values = nullptr;  // of an algorithm with a critic
  std::shared_ptr<const PromptDataset> prompts;
  std::shared_ptr<const PromptDataset> validation = nullptr;  // may be null
  Group group = Group::single();
  Path folder = {};              // of the run, for its records; empty: none are kept
  StepTape* tape = nullptr;      // in place of those records; rank 0's
  ModelFolderOptions save = {};  // of the models in checkpoints
};

// Not thread-safe. Every rank makes the same calls.
class OnlineTrainer : public Trainer {
 public:
  OnlineTrainer(OnlineParts parts, OnlineSettings settings);
  ~OnlineTrainer() override;
  OnlineTrainer(const OnlineTrainer&) = delete;
  OnlineTrainer& operator=(const OnlineTrainer&) = delete;

  // All steps, with validation; for programs of one's own. Saves where there is a saver.
  LoopResult fit(MetricsLog& log, BackgroundSaver* saver = nullptr);
  [[nodiscard]] StepReport run_validation();

  // What was counted: consumed_samples, ALGORITHM_optimization_step, ...
  [[nodiscard]] Counters state_dict() const;
  [[nodiscard]] const OnlinePlan& plan() const { return plan_; }
  [[nodiscard]] Policy& policy() { return policy_; }

  [[nodiscard]] StepReport validate() override { return run_validation(); }
  void rehearse() override;
  [[nodiscard]] std::string failed_phase() const override;
  [[nodiscard]] Counters counters() const override { return state_dict(); }
  [[nodiscard]] FolderWriter save(StateSnapshot& state) const override;
  void load(const StateFiles& state) override;
  // The model's folder as a checkpoint has it, at once.
  void write_model(const Path& folder) const;

 protected:
  // The next prompts, answered. Rewards may be under way.
  [[nodiscard]] AnswerRows generate();
  // The same for a round that the policy is not trained on, before its first step. They are not recorded.
  [[nodiscard]] AnswerRows generate_warmup(int64_t warmup);
  // Leaves such a round out; its prompts are taken all the same.
  void pass_over_warmup_prompts() { static_cast<void>(sampler_.next()); }
  // The prompts of warm-up rounds come again: the first step has taken one batch.
  void hand_back_warmup_prompts();
  // The rewards of what generate() returned.
  void take_rewards(AnswerRows& rows);
  // Into rows that are trained on, in updates as `minibatches` has them: the policy's and the reference's, where they are wanted.
  void add_logprobs(std::span<const Minibatch> minibatches, AnswerRows& rows);
  // How these rows, in a random order that the round decides, fall into updates.
  [[nodiscard]] std::vector<Minibatch> minibatches_of(const AnswerRows& rows, std::vector<int64_t> places) const;
  [[nodiscard]] std::vector<Minibatch> minibatches_of(const AnswerRows& rows) const;  // all of them
  // How a token is trained on.
  struct Learning {
    LossNorm norm;
    TokenLoss loss;
    bool tells_numbers = false;  // the loss tells some beside itself
    bool wants_entropy = false;  // it needs the entropy
  };
  // One update for each minibatch, as often as the settings say.
  [[nodiscard]] std::vector<Metrics> train(std::span<const Minibatch> minibatches, AnswerRows& rows, const Learning& learning);
  // The numbers of a validation that only looks at the KL.
  [[nodiscard]] Metrics validation_numbers(const AnswerRows& rows) const;
  // What is told of a round of answers.
  [[nodiscard]] Metrics round_metrics(const AnswerRows& rows);
  // Ends the step: records, health, numbers.
  [[nodiscard]] StepReport finish_step(AnswerRows rows, std::vector<Metrics> updates);
  // The algorithm's own numbers of a step or a validation, without a prefix.
  [[nodiscard]] virtual Metrics numbers_of(const AnswerRows& rows, bool is_validation) const = 0;

  [[nodiscard]] const OnlineSettings& settings() const { return settings_; }
  [[nodiscard]] const Group& group() const { return parts_.group; }
  [[nodiscard]] ValueDesk* values() const { return parts_.values; }
  [[nodiscard]] int64_t round() const { return round_; }  // steps done
  Timers timers_;

 private:
  [[nodiscard]] RolloutWish wish(RolloutPurpose purpose, std::span<const int64_t> batch, int64_t round) const;
  [[nodiscard]] std::string fingerprint_of(std::span<const int64_t> batch) const;
  [[nodiscard]] std::optional<AnswerRows> recall(std::span<const int64_t> batch);
  void rehearse_generation();
  void rehearse_training();
  void look_at_ends(const AnswerRows& rows) const;
  void look_at_gap(const Metrics& metrics);
  void look_at_invariants(const AnswerRows& rows, const Metrics& metrics);

  OnlineParts parts_;
  OnlineSettings settings_;
  OnlineLengths lengths_;
  OnlinePlan plan_;
  ResponseText responses_;
  std::optional<ResponseText> val_responses_;
  Policy policy_;
  Engine engine_;
  std::optional<WorkQueue> queue_;
  RolloutMaker maker_;
  Sampler sampler_;
  HealthWatch health_;
  Invariants invariants_;
  StepEvidence seen_;                      // of the step at hand
  std::optional<RolloutRecords> records_;  // of the run's folder; rank 0's
  StepTape* tape_ = nullptr;               // where steps are kept; rank 0's
  bool trusts_engine_;                     // its log-probabilities are training's
  int64_t round_ = 0;                      // of rollouts: what their sampling depends on
  int64_t consumed_rollouts_ = 0;
  RecordHeader header_;       // of the step at hand, where it is kept
  std::string weights_hash_;  // after the step before; empty: not known
  bool has_rewards_ = false;  // its answers came from a record, with their rewards
};

// What a rank asks of its engine, with weights as `storage` has them. `network` must outlive it.
[[nodiscard]] EngineInput generation_input(const OnlineSettings& settings, const OnlineLengths& lengths, const ModelConfig& network,
                                           const StorageOptions& storage, int num_ranks);

// How the engine of a policy is to be: `memory: auto` takes what the answers of a step need, and at most half of what is free.
[[nodiscard]] EngineConfig engine_config(const OnlineSettings& settings, const OnlineLengths& lengths, const Model& model, int num_ranks);

// Ids from here on are never drawn.
[[nodiscard]] TokenId drawable_ids(const Tokenizer& tokenizer, const Model& model);

// Are the log-probabilities that answers were drawn by taken for those of training?
[[nodiscard]] bool trusts_engine(LogprobSource source, at::Device device);

// The KL of every row that has log-probabilities of policy and reference.
void add_kl(AnswerRows& rows, KlEstimator estimator);

}  // namespace kedge
