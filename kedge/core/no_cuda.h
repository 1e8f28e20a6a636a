#pragma once
// The error of every stub for CUDA code.
#include "kedge/core/error.h"

namespace kedge {

[[noreturn]] inline void fail_without_cuda() { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace kedge
