#pragma once
// The trainer of SFT, reward models, DPO and KTO: batches of rows from a data set, the loss of their task, one update per step. The task
// defines a row and its loss.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/stop.h"
#include "kedge/data/files/sampler.h"
#include "kedge/dist/group.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/model.h"
#include "kedge/text/tokenizer/tokenizer.h"
#include "kedge/train/loop.h"
#include "kedge/train/optim/learner.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

// The result of some rows.
struct RowsResult {
  Tensor loss;             // a scalar for backward(); undefined if the rows have nothing to learn from
  Tensor sums;             // fp64 [k]: sums for the task's metrics; summed over micro-batches and ranks
  int64_t num_tokens = 0;  // that went through the network
};

// How large an example is.
struct RowSize {
  int64_t tokens = 0, rows = 1, longest = 0;  // tokens in total, rows of a forward pass, tokens of the longest of these
  bool trains = true;                         // false: left out of the loss, because it is too long or has no label
};

// A batch before its passes: all its rows, in the order that every rank knows, and the micro-batches of this one.
struct BatchRows {
  std::span<const int64_t> all;  // places without a row are Sampler::kNoRow
  std::span<const std::vector<int64_t>> own;
  const Group& group;
};

struct SupervisedData {
  std::string name;  // "validation": the first part of its numbers' names
  int64_t size = 0;
  bool drop_last = true;                    // of validation: leave out an incomplete last batch
  int64_t global_size = 0, micro_size = 0;  // rows of its batches; 0: as in training
  std::function<RowsResult(std::span<const int64_t> rows, const PassOptions& pass)> compute;
  std::function<RowSize(int64_t row)> size_of;  // safe to call from several threads
  // For losses that depend on a complete batch, before its passes. Every rank calls it. May be empty.
  std::function<void(const BatchRows& batch)> begin_batch = {};
  // The pass of an update over some rows without their batch, for its memory; empty: `compute` needs no batch.
  std::function<Tensor(std::span<const int64_t> rows, const PassOptions& pass)> rehearse = {};
};

// What the training data requires of a forward pass: the largest possible micro-batch, and the tokens of an epoch. Of more than `at_most`
// rows only this many are read, evenly spread, and the tokens of all are estimated from them. UsageError if none of them is trained on.
struct DataSize {
  RowSize largest_micro;
  std::vector<int64_t> largest_rows;  // those it is made of
  double tokens_per_epoch = 0;
  int64_t num_looked_at = 0;
};
[[nodiscard]] DataSize measure_data(const SupervisedData& data, int64_t micro_size, int64_t at_most = 20000);

// Batches of rows, one after another.
using BatchList = std::vector<std::vector<int64_t>>;

// A run as far as a task may need it.
struct RunPlace {
  Path folder = {};                                   // the run's, the same on every rank
  std::string weights = {};                           // names the weights it started from: equal names, equal weights
  ReferenceKind reference = ReferenceKind::resident;  // where a frozen copy of them goes
  StopQuestion stop = {};
};

// The start of a run for a task: the model still has the weights that the run started from, also if it resumes.
struct TaskStart {
  Model& model;
  const Group& group;
  const RunPlace& place;
  int64_t micro_size = 1;
  BatchList train = {};                    // the batches of the run from its first step on
  int64_t step = 0;                        // those before it are done
  std::vector<BatchList> validation = {};  // by validation set
};

// The model of a task, whose weights are loaded after the data is read: by the first pass. What it refers to must outlive the task.
struct TaskModel {
  const std::unique_ptr<Model>& weights;
  const Tokenizer& tokenizer;
  int64_t vocab_size = 0;  // of the network
  Path folder = {};        // has the chat template
};

struct SupervisedTask {
  SupervisedData train;
  std::vector<SupervisedData> validation;
  // True: the losses of micro-batches add up to that of the batch. False: the batch's is their mean.
  bool losses_add_up = false;
  std::function<void(const TaskStart& start)> begin = {};  // before the first step; collective. May be empty
  size_t num_sums = 0;
  std::function<Metrics(std::span<const double> sums)> metrics_of;  // "loss", ...
  std::function<std::vector<SampleTable>()> samples;                // may be empty
};

// The keys of `trainer.sft`, and of the others with them.
struct SupervisedConfig : UpdateConfig {
  int64_t max_epochs = 1, max_steps = -1;
  Json val_check_interval = 100, save_interval = 100;
  Json limit_train_batches = 1.0, limit_val_batches = 1.0;

  void fields(auto&& field) {
    field("max_epochs", max_epochs, "passes over the training data", at_least(1));
    field("max_steps", max_steps, "maximum number of steps; negative: no limit", at_least(-1));
    field("val_check_interval", val_check_interval, "validate every N steps, or every fraction of an epoch (0.25); 0: never");
    field("save_interval", save_interval, "save every N steps or every fraction of an epoch, a multiple of val_check_interval; 0: never",
          follows("${.val_check_interval}"));
    field("limit_train_batches", limit_train_batches, "training batches per epoch: a count, a fraction, or null for all");
    field("limit_val_batches", limit_val_batches, "batches per validation: a count, a fraction, or null for all; 0: no validation");
    UpdateConfig::fields(field);
  }
};

// The same for tasks whose data may come in the file's order.
struct ShuffledConfig : SupervisedConfig {
  bool train_random_sampler = true;

  void fields(auto&& field) {
    SupervisedConfig::fields(field);
    field("train_random_sampler", train_random_sampler, "shuffle every epoch; false: the order of the file");
    field.ignored("val_random_sampler", "validation follows the order of the file");
  }
};

struct SupervisedBatches {
  int64_t global_size = 1, micro_size = 1;
  bool shuffle = true;
  uint64_t seed = 1234;
  bool goes_on = false;  // max_steps may need more rows than max_epochs has
};

// Steps, and when something is due, of a task under its configuration. UsageError, opened by `section` ("trainer.sft"), for impossible
// values.
struct SupervisedPlan {
  StepPlan steps;
  Intervals intervals;
  std::string section = {};
};
[[nodiscard]] SupervisedPlan plan_supervised(const SupervisedConfig& config, const SupervisedTask& task, const SupervisedBatches& batches,
                                             int num_ranks, const std::string& section);

// The plan of a run that resumes from a checkpoint with another batch size, for the remaining rows.
[[nodiscard]] SupervisedPlan continue_plan(SupervisedPlan plan, const SupervisedConfig& config, const Checkpoint& checkpoint,
                                           int64_t global_size);

struct SupervisedParts {
  Model& model;
  Group group;
  SupervisedTask task;
  SupervisedConfig config;
  OptimConfig optim;
  SupervisedBatches batches;
  SupervisedPlan plan;
  bool checkpoint_activations = false;
  SaveOptions save;
  std::string base;                        // of adapters: the name of their base model
  std::vector<int64_t> largest_rows = {};  // the largest possible micro-batch; empty: nothing is rehearsed
  RunPlace place = {};
};

// Not thread-safe. The model must outlive it.
class SupervisedTrainer final : public Trainer {
 public:
  explicit SupervisedTrainer(SupervisedParts parts);

  // Before the first step of a run that does not resume; load() does it for one that does.
  void begin();
  [[nodiscard]] StepReport train_step() override;
  [[nodiscard]] StepReport validate() override;
  void rehearse() override;
  [[nodiscard]] std::string failed_phase() const override { return phase_; }
  [[nodiscard]] Counters counters() const override;
  [[nodiscard]] FolderWriter save(StateSnapshot& state) const override;
  void load(const StateFiles& state) override;
  // Of the model's folder as a checkpoint has it, now. Collective.
  [[nodiscard]] FolderWriter model_writer() const;

 private:
  struct Sums;
  [[nodiscard]] DropoutSeed dropout_seed(size_t micro) const;
  void begin_at(int64_t step);
  [[nodiscard]] BatchList batches_of(const SupervisedData& validation) const;

  SupervisedParts parts_;
  Learner learner_;
  Sampler sampler_;
  int64_t num_tokens_ = 0;
  std::string phase_;  // in progress, or the last one
};

}  // namespace kedge
