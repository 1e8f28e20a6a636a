#pragma once
// A supervised training run from its settings to its last checkpoint: what SFT, reward models, DPO and KTO have in common.
#include <memory>
#include <string>
#include <vector>

#include "kedge/algo/supervised/supervised.h"
#include "kedge/dist/mesh.h"
#include "kedge/run/job.h"
#include "kedge/run/memory_check.h"
#include "kedge/text/tokenizer/tokenizer.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/training_config.h"

namespace kedge {

// The common parts of a configuration, which must outlive it.
struct SupervisedSections {
  std::string name;       // "sft": the command, and its section below `trainer`
  std::string model_key;  // "model.restore_from_path"
  const std::string& model_path;
  const ComputeConfig& compute;
  const SupervisedConfig& loop;
  const RunConfig& run;
  const NetworkConfig& network;
};

// What a task does with the policy that the run starts from.
struct ReferenceUse {
  bool exists = false;  // its log-probabilities are needed, so its weights must not change
  bool copies = false;  // at every step, from a frozen copy
  double looks = 0;     // forward-only passes over the rows of a step, before its update
};

// A task derives from it and implements its own parts.
class SupervisedJob : public Job {
 public:
  [[nodiscard]] virtual SupervisedSections sections() const = 0;
  virtual void check_config() const {}                   // a UsageError for contradictions
  virtual void limit_length(int64_t max_positions) = 0;  // maximum length of rows
  [[nodiscard]] virtual SupervisedBatches batches() const = 0;
  [[nodiscard]] virtual HeadOptions head() const = 0;
  [[nodiscard]] virtual std::vector<Path> files() const = 0;  // of data
  [[nodiscard]] virtual std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const = 0;
  [[nodiscard]] virtual SupervisedTask make_task(const TaskModel& model) = 0;
  // Memory of sampling between steps, with this maximum length of rows.
  [[nodiscard]] virtual int64_t cache_bytes(const ModelConfig& network, int64_t element_size, int64_t longest) const;
  [[nodiscard]] virtual ReferenceUse reference_use() const { return {}; }
  virtual void add_summary(Json& summary, const Metrics& metrics) const;

  int run(const RunOptions& options) override;
  [[nodiscard]] PlanReport plan(const PlanOptions& options) override;
};

// Everything of a job that can be known before weights are read, the cheapest checks first.
struct SupervisedSetup {
  explicit SupervisedSetup(SupervisedJob& job, const std::optional<PlannedRanks>& planned = {});
  SupervisedSetup(const SupervisedSetup&) = delete;
  SupervisedSetup& operator=(const SupervisedSetup&) = delete;

  SupervisedJob& job;
  SupervisedSections sections;
  Mesh mesh;
  ShardOptions shards;
  Path folder;  // of the model
  ModelConfig network;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;  // null until it is loaded
  SupervisedTask task;
  SupervisedPlan plan;
  DataSize data;

  [[nodiscard]] StorageOptions storage() const;
  [[nodiscard]] int64_t cache_bytes() const;  // for the KV cache during sampling
  // Will the run fit into the free memory?
  [[nodiscard]] MemoryRequest memory_request() const;
};

}  // namespace kedge
