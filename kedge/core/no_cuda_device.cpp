// Stands in for cuda_device.cpp in a build without CUDA.
#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"

namespace kedge {

std::string describe_cuda_device(int) { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace kedge
