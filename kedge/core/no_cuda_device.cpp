// Replaces cuda_device.cpp in a build without CUDA.
#include "kedge/core/cuda_device.h"
#include "kedge/core/no_cuda.h"

namespace kedge {

std::string describe_cuda_device(int) { fail_without_cuda(); }
void check_cuda_device(int, std::string_view) { fail_without_cuda(); }
std::string cuda_bus_id(int) { fail_without_cuda(); }
void* current_cuda_stream(int) { fail_without_cuda(); }
void synchronize_cuda() { fail_without_cuda(); }
int64_t free_cuda_bytes() { fail_without_cuda(); }
void give_back_cuda_memory() { fail_without_cuda(); }
int64_t peak_cuda_bytes() { fail_without_cuda(); }
void reset_peak_cuda_bytes() { fail_without_cuda(); }

}  // namespace kedge
