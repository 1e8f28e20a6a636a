#include "kedge/train/checkpoint/weights_hash.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include "kedge/core/autograd.h"
#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr int64_t kElementSize = 4;
constexpr int64_t kHalf = 0xFFFFFFFF;  // the lower half of 64 bits: shifts of signed numbers fill up with the sign

uint64_t host_bit_sum(const Tensor& weights) {
  constexpr int64_t kPiece = int64_t{1} << 16U;
  const std::string_view bytes(static_cast<const char*>(weights.const_data_ptr()), weights.nbytes());
  std::atomic<uint64_t> sum = 0;
  at::parallel_for(0, weights.numel(), kPiece, [&](int64_t begin, int64_t end) {
    sum += bit_sum(bytes.substr(static_cast<size_t>(begin * kElementSize), static_cast<size_t>((end - begin) * kElementSize)),
                   static_cast<uint64_t>(begin));
  });
  return sum;
}

// The factors of places, [count] int64.
Tensor factors_of(int64_t begin, int64_t end, at::Device device) {
  Tensor factors = at::arange(begin + 1, end + 1, at::TensorOptions().dtype(at::kLong).device(device));
  factors.mul_(static_cast<int64_t>(kPlaceStep));
  factors.bitwise_xor_(factors.bitwise_right_shift(at::Scalar(int64_t{kPlaceShift})).bitwise_and_(at::Scalar(kHalf)));
  return factors.mul_(static_cast<int64_t>(kPlaceSpread)).bitwise_or_(at::Scalar(int64_t{1}));
}

}  // namespace

uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time) {
  const NoGrad no_grad;
  const Tensor words = weights.view(at::kInt);
  Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kLong).device(weights.device()));
  for (int64_t begin = 0; begin < weights.numel(); begin += elements_at_a_time) {
    const int64_t end = std::min(weights.numel(), begin + elements_at_a_time);
    Tensor products = words.slice(0, begin, end).to(at::kLong).bitwise_and_(at::Scalar(kHalf));
    sum += products.mul_(factors_of(begin, end, weights.device())).sum();
  }
  return static_cast<uint64_t>(sum.item<int64_t>());
}

std::string weights_hash(const Tensor& weights) {
  ensure(weights.scalar_type() == at::kFloat && weights.dim() == 1 && weights.is_contiguous(), "weights to hash must be one row of fp32");
  constexpr int64_t kAtATime = int64_t{1} << 22U;  // 160 MiB
  const Tensor detached = weights.detach();
  const uint64_t sum = detached.is_cpu() ? host_bit_sum(detached) : tensor_bit_sum(detached, kAtATime);
  return bit_hash_text(sum, static_cast<uint64_t>(detached.numel() * kElementSize));
}

}  // namespace kedge
