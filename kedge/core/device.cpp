#include "kedge/core/device.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <optional>

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge {
namespace {

struct DtypeNames {
  at::ScalarType dtype;
  std::string_view name;  // as we print it
  std::array<std::string_view, 6> others;
};
constexpr std::array<DtypeNames, 9> kDtypes = {{
    {at::kFloat, "fp32", {"float32", "float", "32", "32-true", "torch.float32", "F32"}},
    {at::kBFloat16, "bf16", {"bfloat16", "bf16-mixed", "bf16-true", "torch.bfloat16", "BF16", "bfloat16-mixed"}},
    {at::kHalf, "fp16", {"float16", "half", "16", "16-mixed", "torch.float16", "F16"}},
    {at::kDouble, "fp64", {"float64", "double", "64", "64-true", "torch.float64", "F64"}},
    {at::kLong, "int64", {"long", "torch.int64", "I64"}},
    {at::kInt, "int32", {"int", "torch.int32", "I32"}},
    {at::kShort, "int16", {"short", "torch.int16", "I16"}},
    {at::kByte, "uint8", {"byte", "torch.uint8", "U8"}},
    {at::kBool, "bool", {"boolean", "torch.bool", "BOOL"}},
}};

std::optional<int> cuda_index(std::string_view name) {
  if (name.substr(0, 5) != "cuda:") return std::nullopt;
  int index = -1;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index < 0) return std::nullopt;
  return index;
}

}  // namespace

int64_t peak_bytes(at::Device device) { return device.is_cuda() ? peak_cuda_bytes() : peak_resident_bytes(); }

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr || dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // torch's CPU allocator has no exception type for it.
  return dynamic_cast<const c10::Error*>(&error) != nullptr &&
         std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

int num_cuda_devices() { return at::detail::getCUDAHooks().deviceCount(); }

at::Device parse_device(std::string_view name, std::string_view where) {
  if (name == "cpu") return {at::kCPU};
  const int present = num_cuda_devices();
  if (name == "auto" && present == 0) return {at::kCPU};
  const std::optional<int> index = name == "cuda" || name == "auto" ? 0 : cuda_index(name);
  check(index.has_value(), where, ": expected auto, cpu, cuda or cuda:N, found \"", name, "\"");
  check(*index<present, where, ": ", name, " asked for, but ", present> 0
            ? str("only ", present, " CUDA devices are present")
            : std::string("no CUDA device is usable (kedge doctor says why)"));
  check_cuda_device(*index, where);
  return {at::kCUDA, static_cast<at::DeviceIndex>(*index)};
}

std::string name_of(at::Device device) { return device.is_cpu() ? "cpu" : str("cuda:", static_cast<int>(device.index())); }

void use_device(at::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

at::ScalarType parse_dtype(std::string_view name, std::string_view where) {
  for (const DtypeNames& row : kDtypes)
    if (row.name == name || (!name.empty() && std::find(row.others.begin(), row.others.end(), name) != row.others.end())) return row.dtype;
  throw UsageError(str(where, ": expected fp32, bf16 or fp16, found \"", name, "\""));
}

std::string name_of(at::ScalarType dtype) {
  for (const DtypeNames& row : kDtypes)
    if (row.dtype == dtype) return std::string(row.name);
  return kedge::str(dtype);
}

void make_cuda_deterministic() {
  // A product may use another algorithm if its workspace is too small, which varies if several share it.
  static_cast<void>(::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0));
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, false);
  context.setDeterministicFillUninitializedMemory(false);  // nothing here reads what it has not written
}

}  // namespace kedge
