#pragma once
// Names of devices and number types as users write them and as we print them.
#include <exception>
#include <string>
#include <string_view>

#include "kedge/core/tensor.h"

namespace kedge {

// "cpu", "cuda", "cuda:N" or "auto" (a GPU when there is one). `where` opens the error: "--device".
[[nodiscard]] at::Device parse_device(std::string_view name, std::string_view where);
[[nodiscard]] std::string name_of(at::Device device);

// What this thread does with CUDA and names no device for is done there from now on: streams, recordings, questions about memory. Without
// it that is the first GPU, where the process would also hold a context.
void use_device(at::Device device);

// fp32, bf16, fp16 and the other spellings in use: float32, bfloat16, 32, bf16-mixed, 32-true, torch.float16, ...
[[nodiscard]] at::ScalarType parse_dtype(std::string_view name, std::string_view where);
[[nodiscard]] std::string name_of(at::ScalarType dtype);

// How many CUDA devices this process can use; 0 in a build without CUDA.
[[nodiscard]] int num_cuda_devices();

// The most memory that was held: on CUDA since the last reset, else by the whole process.
[[nodiscard]] int64_t peak_bytes(at::Device device);

// Is it an out-of-memory error, of a device or of the host?
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

// From now on CUDA computes the same bits from the same numbers, at some cost in speed. Call it before the first tensor is created there; a
// CPU always does.
void make_cuda_deterministic();

}  // namespace kedge
