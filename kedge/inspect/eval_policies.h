#pragma once
// The policies that kedge eval evaluates, one after another in one model with one engine if their networks are the same, and the
// policy that their KL is measured from.
#include <functional>
#include <map>
#include <memory>

#include "kedge/algo/online/online_plan.h"
#include "kedge/engine/engine.h"
#include "kedge/inspect/eval_targets.h"
#include "kedge/model/model.h"

namespace kedge {

// What a run started from.
struct RunStart {
  Path folder;  // the model's
  NetworkConfig network;
};

struct EvalPolicyOptions {
  StorageOptions storage;
  std::map<Path, RunStart> starts;                            // by the folder of the run
  std::optional<EvalTarget> reference;                        // none: no KL is measured
  std::function<EngineConfig(const Model& model)> engine_of;  // options of a model's engine
};

// Not thread-safe.
class EvalPolicies {
 public:
  explicit EvalPolicies(EvalPolicyOptions options) : options_(std::move(options)) {}

  // Replaces the one before.
  void load(const EvalTarget& target);
  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] Engine& engine() { return *engine_; }

  [[nodiscard]] bool has_reference() const { return options_.reference.has_value(); }
  // The policy must not be used meanwhile: with its adapters off it may be the reference.
  void with_reference(const std::function<void(const Model& reference)>& use);

 private:
  void load_start(const RunOnDisk& run);
  void load_folder(const EvalTarget& target);
  void start_engine();
  [[nodiscard]] bool is_reference_below() const;

  EvalPolicyOptions options_;
  std::unique_ptr<Model> model_, reference_;
  std::unique_ptr<Engine> engine_;  // uses the model, so it is destroyed first
  Path base_;                       // the base model's folder with adapters, or its own
  Path run_;                        // whose checkpoints can replace its weights; empty: none
};

}  // namespace kedge
