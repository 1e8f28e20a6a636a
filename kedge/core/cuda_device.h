#pragma once
// Facts of a CUDA device. In a build without CUDA there are none.
#include <cstdint>
#include <string>
#include <string_view>

namespace kedge {

// "NVIDIA H200, 139 GiB (137 GiB free), sm_90, kernels compiled for sm_90a" (core/gpu_code.h). `index` must be below num_cuda_devices().
[[nodiscard]] std::string describe_cuda_device(int index);

// Throws UsageError if this program has no kernels for the device: too old, or not among those that it was compiled for. `where` opens
// the error: "--device".
void check_cuda_device(int index, std::string_view where);

// The device's place on the PCI bus, "0000:1b:00.0": the same for every process of a machine, whatever devices it was given.
[[nodiscard]] std::string cuda_bus_id(int index);

// The stream that this thread's work on a device is queued on: a cudaStream_t.
[[nodiscard]] void* current_cuda_stream(int index);

// Waits until the device has done all it was given.
void synchronize_cuda();

// Memory that tensors could still take on the current device.
[[nodiscard]] int64_t free_cuda_bytes();

// Releases cached memory to the device, so that others can use it.
void give_back_cuda_memory();

// The most memory that tensors held at once since the last reset, on the current device.
[[nodiscard]] int64_t peak_cuda_bytes();
void reset_peak_cuda_bytes();

}  // namespace kedge
