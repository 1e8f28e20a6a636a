#pragma once
// Where a model's files are: a folder, or a name in the local Hugging Face cache; and which files are copied with its weights. Loads no
// weights and never downloads.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"

namespace kedge {

// The folder that `given` refers to: itself, model/ in the folder of a run or a checkpoint, or the snapshot of `Org/Name` (or `Name`) in
// the Hugging Face cache. Anything else (NeMo, GGUF, pickled files, adapters) is a UsageError with what to do. So is a run that went on
// after it wrote its model and is not complete, and a checkpoint whose model/ is damaged: every byte of it is compared with the hashes
// that were saved. `where` is the setting: "--model".
[[nodiscard]] Path find_model_folder(const std::string& given, std::string_view where);

// The files in addition to weights and config.json that a model needs: tokenizer, chat templates, generation_config.json. Those that
// are there, relative to the folder, sorted.
[[nodiscard]] std::vector<Path> companion_files(const Path& folder);

// The same files, byte for byte, in another folder, which is created if missing.
void copy_companions(const Path& from, const Path& to);

}  // namespace kedge
