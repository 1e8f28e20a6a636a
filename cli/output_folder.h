#pragma once
// The folder that a command writes a model to: what it may contain before, and what is removed.
#include "kedge/core/files.h"

namespace kedge::cli {

// UsageError if `out` is a file, or holds anything and may not be overwritten.
void check_out_folder(const Path& out, bool overwrite);

// Are they one folder, by whatever names?
[[nodiscard]] bool is_same_folder(const Path& a, const Path& b);

// Removes the files of an earlier model or adapter, config.json first, so that none of them is mistaken for a part of the new one. Other
// files stay.
void remove_model_files(const Path& folder);

}  // namespace kedge::cli
