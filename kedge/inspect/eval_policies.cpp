#include "kedge/inspect/eval_policies.h"

#include "kedge/model/files/model_files.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/run/device_setup.h"
#include "kedge/train/checkpoint/model_state.h"

namespace kedge {
namespace {

std::unique_ptr<Model> load_with_adapters(const EvalTarget& target, const StorageOptions& storage) {
  auto model = load_model(target.base, {.storage = storage, .head = HeadKind::language});
  if (has_adapters(target.folder)) load_adapter(*model, target.folder, false);
  return model;
}

}  // namespace

void EvalPolicies::load(const EvalTarget& target) {
  if (target.kind == PolicyKind::model) return load_folder(target);
  if (target.kind == PolicyKind::start || run_ != target.run->folder) load_start(*target.run);
  if (target.kind == PolicyKind::checkpoint) load_model_state(*model_, StateFiles(target.folder / "state"));
}

void EvalPolicies::load_start(const RunOnDisk& run) {
  const RunStart& start = options_.starts.at(run.folder);
  engine_.reset();
  model_.reset();
  model_ = load_model(start.folder, {.storage = options_.storage, .head = HeadKind::language});
  add_trained_adapters(*model_, start.network);
  base_ = start.folder;
  run_ = run.folder;
  start_engine();
}

void EvalPolicies::load_folder(const EvalTarget& target) {
  engine_.reset();
  model_.reset();
  model_ = load_with_adapters(target, options_.storage);
  base_ = target.base;
  run_.clear();
  start_engine();
}

// The reference comes before the engine, which takes a share of the memory that is left.
void EvalPolicies::start_engine() {
  if (options_.reference && !reference_ && !is_reference_below()) {
    const EvalTarget& target = *options_.reference;
    reference_ = target.kind == PolicyKind::model
                     ? load_with_adapters(target, options_.storage)
                     : load_model(options_.starts.at(target.run->folder).folder, {.storage = options_.storage, .head = HeadKind::language});
  }
  engine_ = std::make_unique<Engine>(*model_, options_.engine_of(*model_));
}

// Is it the network below the policy's adapters?
bool EvalPolicies::is_reference_below() const {
  const EvalTarget& target = *options_.reference;
  if (model_->adapters() == nullptr) return false;
  if (target.kind == PolicyKind::start) return options_.starts.at(target.run->folder).folder == base_;
  return target.folder == target.base && target.base == base_;
}

void EvalPolicies::with_reference(const std::function<void(const Model& reference)>& use) {
  if (!is_reference_below()) return use(*reference_);
  const AdaptersOff off(model_->adapters());
  use(*model_);
}

}  // namespace kedge
