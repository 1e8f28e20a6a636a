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
  std::string base;  // of adapters: the name of their base model
};

// The folder: the complete model, or the adapters and the companions.
void write_model_folder(const Model& model, const Path& folder, const ModelFolderOptions& options);

// Writes the folder as the model is now: the first rank all of it, or every rank its part of it if they share the weights. Undefined on
// ranks that hold nothing of their own. Not independent of later changes.
[[nodiscard]] FolderWriter model_writer(const Model& model, const ModelFolderOptions& options);

// Puts this rank's part of the trained weights into `state`. The result writes the folder as model_writer() has it; of a state that
// copies, on any thread and independent of the model's later changes.
[[nodiscard]] FolderWriter save_model_state(const Model& model, StateSnapshot& state, const ModelFolderOptions& options);
// A rank's part of a checkpoint: state/ and model/, as far as it has something of them.
void write_part_of(int rank, const StateSnapshot& state, const FolderWriter& write_model, const Path& folder);
// Into a trained or inference-only model, of any number type.
void load_model_state(Model& model, const StateFiles& state);
// The hash of the weights in the state's folder, as weights_hash() has it. Reads them alone.
[[nodiscard]] std::string saved_weights_hash(const Path& folder);

// Identifies a model before it is trained: equal ones have equal prints, on every device and in every number type they may compute with.
// Uses the configuration and some weights of every tensor. Collective.
[[nodiscard]] std::string start_print(const Model& model);

}  // namespace kedge
