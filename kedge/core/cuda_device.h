#pragma once
// Facts of a CUDA device. In a build without CUDA there are none to ask about.
#include <string>

namespace kedge {

// "NVIDIA H200, 139 GiB (137 GiB free), sm_90". `index` must be below num_cuda_devices().
[[nodiscard]] std::string describe_cuda_device(int index);

}  // namespace kedge
