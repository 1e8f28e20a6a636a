#pragma once
// A supervised training command from its configuration to its last checkpoint: what kedge sft and kedge rm have in common.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kedge/algo/supervised.h"
#include "kedge/algo/training_config.h"
#include "kedge/core/config.h"
#include "kedge/data/tokenizer.h"
#include "kedge/dist/mesh.h"
#include "kedge/train/run_folder.h"

#include "cli/arguments.h"
#include "cli/memory_check.h"
#include "cli/plan.h"

namespace kedge::cli {

// An algorithm's own part. Everything refers to its configuration, which must outlive it.
struct TrainingJob {
  std::string name;       // "sft": the command, and its section below `trainer`
  Section section;        // of the whole configuration
  std::string model_key;  // "model.restore_from_path"
  const std::string& model_path;
  const ComputeConfig& compute;
  const SupervisedConfig& loop;
  const RunConfig& run;
  const NetworkConfig& network;

  std::function<void()> check_config;                       // what contradicts itself; may be empty
  std::function<void(int64_t max_positions)> limit_length;  // rows are at most so long
  std::function<SupervisedBatches()> batches;
  std::function<HeadOptions()> head;
  std::function<std::vector<Path>()> data_files;
  std::function<std::unique_ptr<Model>(const Path& folder, const StorageOptions& storage)> load_model;
  std::function<SupervisedTask(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const Path& folder)> make_task;
  // What drawing samples takes between steps, where rows are at most so long; may be empty.
  std::function<int64_t(const ModelConfig& network, int64_t element_size, int64_t longest)> cache_bytes;
  std::function<void(Json& summary, const Metrics& last)> add_summary;  // what its summary says besides; may be empty
};

// Everything of a job that can be known before weights are read, in the order in which mistakes are cheapest to find.
struct TrainingSetup {
  explicit TrainingSetup(const TrainingJob& job);
  TrainingSetup(const TrainingSetup&) = delete;
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  const TrainingJob& job;
  Mesh mesh;
  Path folder;  // of the model
  ModelConfig network;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;  // null until it is loaded
  SupervisedTask task;
  SupervisedPlan plan;
  DataSize data;

  [[nodiscard]] StorageOptions storage() const;
  [[nodiscard]] int64_t cache_bytes() const;  // for keys and values while samples are drawn
  // Will the run fit into what is free now?
  [[nodiscard]] MemoryQuestion memory_question() const;
};

// Loads the configuration the arguments name and runs the job. Returns the exit code.
int run_training(const TrainingJob& job, const Arguments& arguments);
// The same as far as kedge plan goes.
[[nodiscard]] PlanReport plan_training(const TrainingJob& job, const PlanArguments& arguments);

}  // namespace kedge::cli
