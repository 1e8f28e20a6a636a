#pragma once
// The model's part of a checkpoint: its weights among the state, and its folder as others read it.
#include <functional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/model.h"
#include "kedge/train/checkpoint/state_files.h"

namespace kedge {

using FolderWriter = std::function<void(const Path& folder)>;

struct ModelFolderOptions {
  SaveOptions save;
  std::string base;  // of adapters: the name of the model they stand on
};

// The folder: the whole model, or the adapters and the companions.
void write_model_folder(const Model& model, const Path& folder, const ModelFolderOptions& options);

// Puts the trained weights into `state`. The result writes the folder as the model is now; of a state that copies, on any thread and
// whatever becomes of the model.
[[nodiscard]] FolderWriter save_model_state(const Model& model, StateSnapshot& state, const ModelFolderOptions& options);
// Into a model that trains, or one that only computes, in whatever numbers.
void load_model_state(Model& model, const StateFiles& state);
// The hash of the weights in the state's folder, as weights_hash() has it. Reads them alone.
[[nodiscard]] std::string saved_weights_hash(const Path& folder);

// Tells models apart before they are trained: equal ones have equal prints, on every device and in every number type they may compute with.
// Looks at the configuration and at some weights of every tensor.
[[nodiscard]] std::string start_print(const Model& model);

}  // namespace kedge
