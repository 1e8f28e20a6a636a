#pragma once
// The folder a command writes a model into: what may be there before, and what goes.
#include "kedge/core/files.h"

namespace kedge::cli {

// UsageError where `out` is a file, or holds anything and may not be overwritten.
void check_out_folder(const Path& out, bool overwrite);

// Are they one folder, by whatever names?
[[nodiscard]] bool is_same_folder(const Path& a, const Path& b);

// Removes the files of an earlier model or adapter, config.json first, so that none of them passes for a part of the new one. Other
// files stay.
void remove_model_files(const Path& folder);

}  // namespace kedge::cli
