#include "kedge/model/files/tensor_bytes.h"

#include <cmath>

#include <ATen/ops/aminmax.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// A view of the file's bytes; it is only read.
Tensor view_of(const TensorSource& source) {
  return at::from_blob(const_cast<char*>(source.bytes.data()), source.shape, scalar_type(source.type));
}

}  // namespace

at::ScalarType scalar_type(WeightType type) {
  return type == WeightType::f32 ? at::kFloat : type == WeightType::bf16 ? at::kBFloat16 : at::kHalf;
}

WeightType weight_type_of(at::ScalarType type, std::string_view where) {
  check(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf, where, ": weights cannot be kept as ", c10::toString(type),
        "; expected fp32, bf16 or fp16");
  return type == at::kFloat ? WeightType::f32 : type == at::kBFloat16 ? WeightType::bf16 : WeightType::f16;
}

void read_tensor(const TensorSource& source, const Tensor& to) {
  const Tensor from = view_of(source);
  to.copy_(source.transposed ? from.t() : from);
}

bool has_non_finite(const TensorSource& source) {
  const Tensor from = view_of(source);
  if (from.numel() == 0) return false;
  const auto [least, most] = at::aminmax(from);
  return !std::isfinite(least.to(at::kFloat).item<float>()) || !std::isfinite(most.to(at::kFloat).item<float>());
}

}  // namespace kedge
