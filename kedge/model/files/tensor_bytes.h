#pragma once
// Tensors from and to the bytes of weight files.
#include <string>
#include <string_view>

#include "kedge/core/tensor.h"
#include "kedge/model/files/safetensors.h"

namespace kedge {

[[nodiscard]] at::ScalarType scalar_type(WeightType type);
// UsageError, opened by `where`, for a type that files cannot hold.
[[nodiscard]] WeightType weight_type_of(at::ScalarType type, std::string_view where);

// Copies a tensor of `shape` from `bytes` into `to` (any dtype and device; transposed first if requested).
struct TensorSource {
  std::string_view bytes;
  WeightType type;
  std::vector<int64_t> shape;
  bool transposed = false;
};
void read_tensor(const TensorSource& source, const Tensor& to);
// Does it hold NaN or an infinity?
[[nodiscard]] bool has_non_finite(const TensorSource& source);

// The bytes of a tensor in row order, converted to `type`, given to `use` in pieces of a bounded size.
template <typename F>
void write_tensor(const Tensor& tensor, WeightType type, F&& use) {
  const Tensor flat = tensor.reshape({-1});
  constexpr int64_t kPiece = 16 << 20;
  for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
    const Tensor piece = flat.narrow(0, begin, std::min(kPiece, flat.numel() - begin)).to(at::kCPU, scalar_type(type)).contiguous();
    use(std::string_view(static_cast<const char*>(piece.const_data_ptr()), piece.nbytes()));
  }
}

}  // namespace kedge
