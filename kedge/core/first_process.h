#pragma once
// What the first process of a container owes the others: it passes signals on, and takes in those whose parents have ended.
#include <functional>

namespace kedge {

// Runs `work` in a child, which alone returns, with what `work` returns; this process ends with the child's exit code, or 128 + the signal
// that ended it. Signals that somebody sends here go to the child; those of a terminal reach it anyway. Call it before there are threads.
int run_as_first_process(const std::function<int()>& work);

}  // namespace kedge
