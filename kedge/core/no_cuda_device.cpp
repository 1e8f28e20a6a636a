// Stands in for cuda_device.cpp in a build without CUDA.
#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"

namespace kedge {

namespace {

[[noreturn]] void fail() { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace

std::string describe_cuda_device(int) { fail(); }
void check_cuda_device(int, std::string_view) { fail(); }
void synchronize_cuda() { fail(); }
int64_t free_cuda_bytes() { fail(); }
void give_back_cuda_memory() { fail(); }
int64_t peak_cuda_bytes() { fail(); }
void reset_peak_cuda_bytes() { fail(); }

}  // namespace kedge
