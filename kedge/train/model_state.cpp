#include "kedge/train/model_state.h"

#include <memory>

#include "kedge/model/model_folder.h"
#include "kedge/model/model_snapshot.h"
#include "kedge/model/peft_files.h"

namespace kedge {
namespace {

constexpr const char* kWeights = "parameters";

}  // namespace

void write_model_folder(const Model& model, const Path& folder, const ModelFolderOptions& options) {
  if (model.adapters() == nullptr) return save_model(model, folder, options.save);
  if (options.save.companions) copy_companions(*options.save.companions, folder);
  save_adapter(model, folder, options.base);
}

FolderWriter save_model_state(const Model& model, StateSnapshot& state, const ModelFolderOptions& options) {
  if (!state.copies()) {
    state.add(kWeights, model.trained().flat_master());
    return [&model, options](const Path& folder) { write_model_folder(model, folder, options); };
  }
  // One copy of the weights serves the state and the model's folder.
  const auto snapshot = std::make_shared<const ModelSnapshot>(model);
  state.take(kWeights, snapshot->masters());
  return [snapshot, options](const Path& folder) { snapshot->save(folder, options.save, options.base); };
}

void load_model_state(Model& model, const StateFiles& state) {
  state.read(kWeights, model.trained().flat_master());
  model.trained().publish();
}

}  // namespace kedge
