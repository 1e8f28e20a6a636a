#include "kedge/core/cuda_device.h"

#include <array>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/cuda_error.h"
#include "kedge/core/error.h"
#include "kedge/core/gpu_code.h"
#include "kedge/core/machine.h"

namespace kedge {
namespace {

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties;
}

constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// The allocator cannot be asked before the first tensor started it.
bool has_tensors() { return c10::cuda::CUDACachingAllocator::get()->initialized(); }

}  // namespace

std::string describe_cuda_device(int index) {
  const cudaDeviceProp properties = properties_of(index);
  must(cudaSetDevice(index), "cudaSetDevice");
  size_t free_bytes = 0, total_bytes = 0;
  must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return str(properties.name, ", ", format_bytes(static_cast<int64_t>(total_bytes)), " (", format_bytes(static_cast<int64_t>(free_bytes)),
             " free), sm_", properties.major, properties.minor, ", ",
             describe(gpu_code_for({properties.major, properties.minor}, KEDGE_CUDA_ARCHITECTURES)));
}

void check_cuda_device(int index, std::string_view where) {
  const cudaDeviceProp properties = properties_of(index);
  check_gpu({properties.name, {properties.major, properties.minor}}, KEDGE_CUDA_ARCHITECTURES, str(where, ": cuda:", index));
}

std::string cuda_bus_id(int index) {
  std::array<char, 32> text{};
  must(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index), "cudaDeviceGetPCIBusId");
  return text.data();
}

void* current_cuda_stream(int index) { return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(index)).stream(); }

void synchronize_cuda() { must(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

int64_t free_cuda_bytes() {
  size_t free_bytes = 0, total_bytes = 0;
  must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  if (!has_tensors()) return static_cast<int64_t>(free_bytes);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return static_cast<int64_t>(free_bytes) + stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
}

void give_back_cuda_memory() {
  if (has_tensors()) c10::cuda::CUDACachingAllocator::emptyCache();
}

int64_t peak_cuda_bytes() {
  if (!has_tensors()) return 0;
  return c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device()).allocated_bytes[kAll].peak;
}

void reset_peak_cuda_bytes() {
  if (has_tensors()) c10::cuda::CUDACachingAllocator::resetPeakStats(c10::cuda::current_device());
}

}  // namespace kedge
