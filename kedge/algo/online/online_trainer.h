#pragma once
// Online training: a step's responses from the policy's own engine, their log-probabilities and rewards, updates, a critic that learns
// along with the policy, validation, records, health, and all of it in a checkpoint. The Algorithm decides what is learned from the
// responses.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/algo/online/algorithm.h"
#include "kedge/algo/online/critic_training.h"
#include "kedge/algo/online/generation.h"
#include "kedge/algo/online/health.h"
#include "kedge/algo/online/online_plan.h"
#include "kedge/algo/online/policy.h"
#include "kedge/core/rare_log.h"
#include "kedge/data/files/sampler.h"
#include "kedge/engine/engine.h"
#include "kedge/metrics/timer.h"
#include "kedge/model/resharded_model.h"
#include "kedge/rollout/rollout_maker.h"
#include "kedge/rollout/rollout_records.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/rollout/value_collector.h"
#include "kedge/rollout/work_queue.h"
#include "kedge/train/checkpoint/checkpoint_store.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/loop.h"

namespace kedge {

// Ranks that generate in another layout than they train in.
struct GenerationRanks {
  Group group;         // with different prompts
  TensorRanks tensor;  // that compute each answer together
};

// What an online trainer works with. Everything must outlive it.
struct OnlineParts {
  Model& model;
  const Tokenizer& tokenizer;
  RewardSource& rewards;
  ValueCollector* values = nullptr;  // of an algorithm with a critic
  std::shared_ptr<const PromptDataset> prompts;
  std::shared_ptr<const PromptDataset> validation = nullptr;  // may be null
  Group group = Group::single();                              // ranks that have different rows
  std::optional<Group> world = {};                            // all of them, where several compute the model together; else the same
  std::optional<GenerationRanks> generation = {};             // none: as in training
  Path folder = {};                                           // of the run, for its records; empty: none are kept
  StepStore* store = nullptr;                                 // in place of those records; rank 0's
  ModelFolderOptions save = {};                               // of the models in checkpoints
  std::optional<Position> position = {};                      // of the checkpoint that is loaded next; none: the run begins
};

struct FitOptions {
  BackgroundSaver* saver = nullptr;                     // null: nothing is saved
  const CheckpointStore* resume_from = nullptr;         // its newest valid checkpoint, if it has one, is loaded first
  std::optional<std::chrono::seconds> time_limit = {};  // then it validates, saves and ends
};

// Not thread-safe. Every rank makes the same calls.
class OnlineTrainer : public Trainer {
 public:
  OnlineTrainer(OnlineParts parts, OnlineSettings settings, std::unique_ptr<Algorithm> algorithm);
  ~OnlineTrainer() override;
  OnlineTrainer(const OnlineTrainer&) = delete;
  OnlineTrainer& operator=(const OnlineTrainer&) = delete;

  // All steps, with validation; for your own programs.
  LoopResult fit(MetricsLog& log, const FitOptions& options = {});
  // How many steps there are in all; before fit().
  void set_max_steps(int64_t max_steps) { plan_.steps.max_steps = plan_.intervals.max_steps = max_steps; }

  // The phases of a step, for code that inspects or changes what is passed between them.
  // Responses to the next prompts, with rewards, the critic's values, and log-probabilities unless the step's only update gives them.
  [[nodiscard]] OnlineStep generate_rollouts();
  // The algorithm's scores of them.
  void score(OnlineStep& step) const;
  // The critic starts to train on them.
  void train_critic(const OnlineStep& step) { critic_->train(step.rows); }
  // One update for each minibatch, as often as there are epochs; their metrics.
  [[nodiscard]] std::vector<Metrics> run_training(OnlineStep& step);
  // All of these.
  [[nodiscard]] StepReport train_step() override;
  [[nodiscard]] StepReport run_validation();

  // What was counted: consumed_samples, ALGORITHM_optimization_step, ...; dropped_samples, once dynamic sampling has dropped prompts.
  [[nodiscard]] Counters state_dict() const;
  // The trainer as it was when this state was saved: counters, weights, optimizer, sampler.
  void load_state_dict(const StateFiles& state) { load(state); }
  [[nodiscard]] const OnlinePlan& plan() const { return plan_; }
  [[nodiscard]] Policy& policy() { return policy_; }

  [[nodiscard]] StepReport validate() override { return run_validation(); }
  void rehearse() override;
  [[nodiscard]] std::string failed_phase() const override;
  void finish() override;
  [[nodiscard]] Counters counters() const override { return state_dict(); }
  [[nodiscard]] FolderWriter save(StateSnapshot& state) const override;
  void note_saved(const std::vector<int64_t>& steps) override;
  void load(const StateFiles& state) override;
  // Of the model's folder as a checkpoint has it, now. Collective.
  [[nodiscard]] FolderWriter model_writer() const;

 private:
  [[nodiscard]] RolloutRequest wish(RolloutPurpose purpose, std::span<const int64_t> batch, int64_t round) const;
  [[nodiscard]] std::string fingerprint_of(std::span<const int64_t> batch, const std::string& weights_before) const;
  [[nodiscard]] std::optional<RolloutRows> recorded(const RecordHeader& header, std::span<const int64_t> batch);
  // Responses to one of the batches ahead of a step.
  [[nodiscard]] RolloutRows generate_batch(std::span<const int64_t> ahead, int64_t index, bool wants_rewards);
  [[nodiscard]] std::string weights_before();
  // The prompts of the next batches, as many as a step may take; a step takes at least the first.
  [[nodiscard]] std::vector<int64_t> prompts_ahead() const;
  [[nodiscard]] OnlineStep generate();
  // Batch after batch, until enough responses differ in their rewards.
  [[nodiscard]] RolloutRows generate_dynamically(std::span<const int64_t> ahead);
  // Computes log-probabilities while rewards and values are pending, then waits for those.
  void complete(OnlineStep& step);
  void take_rewards(OnlineStep& step);
  void add_logprobs(OnlineStep& step);
  // A pass of its own computes the policy's log-probabilities: neither the engine's are taken nor those of the update.
  [[nodiscard]] bool looks_before_updates() const;
  // The algorithm's scores of the rows of a pass, which are all responses to some prompts.
  void score_rows(const Pass& pass, RolloutRows& rows) const;
  // How the rows at these places, in a random order that the round decides, are divided into updates.
  [[nodiscard]] std::vector<Minibatch> minibatches_of(const RolloutRows& rows, std::vector<int64_t> places) const;
  // A round of responses that trains the critic alone, before the policy's first step. It is not recorded.
  [[nodiscard]] Metrics warm_up_critic(int64_t warmup);
  [[nodiscard]] Metrics step_metrics(const OnlineStep& step);
  [[nodiscard]] StepReport finish_step(OnlineStep step, std::vector<Metrics> updates);
  [[nodiscard]] FolderWriter save_policy(StateSnapshot& state) const;
  void rehearse_training();
  [[nodiscard]] const Group& world() const { return parts_.world ? *parts_.world : parts_.group; }
  // What generates, the number of ranks that do so with different prompts, and its weights while they are needed.
  [[nodiscard]] const Model& generator() const { return resharded_ ? resharded_->model() : parts_.model; }
  [[nodiscard]] const Group& generating() const { return parts_.generation ? parts_.generation->group : parts_.group; }
  [[nodiscard]] GenerationWeights hold_weights();
  [[nodiscard]] bool is_first() const { return world().rank() == 0; }
  void look_at_ends(const RolloutRows& rows) const;
  void look_at_preemptions();
  void look_at_gap(const Metrics& metrics);
  void look_at_invariants(const OnlineStep& step, const Metrics& metrics);

  Timers timers_;
  OnlineParts parts_;
  OnlineSettings settings_;
  std::unique_ptr<Algorithm> algorithm_;
  OnlineLengths lengths_;
  OnlinePlan plan_;
  ResponseText responses_;
  std::optional<ResponseText> val_responses_;
  Policy policy_;
  std::optional<CriticTraining> critic_;
  std::unique_ptr<ReshardedModel> resharded_;  // weights in generation's own layout; null: as in training
  Engine engine_;
  std::optional<WorkQueue> queue_;
  RolloutMaker maker_;
  Sampler sampler_;
  HealthWatch health_;
  Invariants invariants_;
  std::optional<RolloutRecords> records_;  // of the run's folder; rank 0's
  StepStore* store_ = nullptr;             // if steps are recorded; rank 0's
  bool trusts_engine_;                     // its log-probabilities are training's
  RareLog short_steps_;                    // in which dynamic sampling found too few prompts
  RareLog crowded_steps_;                  // in which responses had to wait for memory
  int64_t num_preempted_ = 0;              // by the engine, until now
  int64_t round_ = 0;                      // of rollouts: what their sampling depends on
  int64_t consumed_rollouts_ = 0, dropped_samples_ = 0;
  std::string weights_hash_;  // after the step before; empty: not known
};

}  // namespace kedge
