#pragma once
// Which code of this program a GPU runs: instructions compiled for its architecture, or PTX that the driver compiles for it at the first
// use. Independent of CUDA and torch.
#include <string>
#include <string_view>

namespace kedge {

// 9.0 is an H100, 8.0 an A100, 12.0 an RTX 5090.
struct ComputeCapability {
  int major = 0, minor = 0;
};

// What the kernels themselves need: products of bf16 matrices on tensor cores came with it.
inline constexpr ComputeCapability kLeastCapability{8, 0};

enum class GpuCodeKind { native, ptx, too_old, none };

struct GpuCode {
  GpuCodeKind kind = GpuCodeKind::none;
  std::string architecture;  // "90a": what it was compiled for; empty for too_old and none
};

// `architectures` are those the program was compiled for, as CMake names them, with blanks or semicolons between: "86-real 90a-real
// 80-virtual". One with neither -real nor -virtual is both.
[[nodiscard]] GpuCode gpu_code_for(ComputeCapability card, std::string_view architectures);

// "compiled for sm_90a", "PTX of compute_80, compiled by the driver", "too old: ...".
[[nodiscard]] std::string describe(const GpuCode& code);

struct Gpu {
  std::string name;  // "NVIDIA H200"
  ComputeCapability capability;
};

// Throws UsageError if the program has no code for that GPU; `where` opens it: "--device: cuda:0".
void check_gpu(const Gpu& gpu, std::string_view architectures, std::string_view where);

}  // namespace kedge
