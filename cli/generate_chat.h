#pragma once
// A conversation over a folder's chat template: lines of standard input in, answers streamed to standard output.
#include "cli/generation.h"

namespace kedge::cli {

// Returns the process's exit code.
[[nodiscard]] int run_chat(Generation& generation, const GenerateOptions& options);

}  // namespace kedge::cli
