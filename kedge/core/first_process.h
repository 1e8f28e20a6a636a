#pragma once
// The duties of a container's first process: it forwards signals and reaps orphaned processes.
#include <functional>

namespace kedge {

// Runs `work` in a child, which alone returns, with what `work` returns; this process ends with the child's exit code, or 128 + the signal
// that ended it. Signals sent to this process are forwarded to the child; those of a terminal reach it anyway. Call it before there are
// threads.
int run_as_first_process(const std::function<int()>& work);

}  // namespace kedge
