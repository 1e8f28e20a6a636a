#pragma once
// What every stand-in for CUDA code says when it is called after all.
#include "kedge/core/error.h"

namespace kedge {

[[noreturn]] inline void fail_without_cuda() { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace kedge
