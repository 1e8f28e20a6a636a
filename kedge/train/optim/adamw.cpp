#include "kedge/train/optim/adamw.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_rows.h"
#include "kedge/train/optim/cuda_adamw.h"

namespace kedge {
namespace {

using cpu::store;
using cpu::widen;

// Which products are fused with an addition is explicit, not left to the compiler, so that the bits are the same everywhere.
template <typename Moment, typename Published>
KEDGE_INLINE void update_range(float* weight, const float* gradient, Moment* first, Moment* second, Published* published, int64_t begin,
                               int64_t end, const AdamWFactors& f) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * f.grad_scale;
    const float m = __builtin_fmaf(f.beta1, widen(first[i]), f.one_minus_beta1 * g);
    const float v = __builtin_fmaf(f.beta2, widen(second[i]), f.one_minus_beta2 * g * g);
    store(first[i], m);
    store(second[i], v);
    weight[i] = __builtin_fmaf(weight[i], f.keep, -(f.rate * m / __builtin_fmaf(std::sqrt(v), f.second_scale, f.eps)));
  }
  if (published != nullptr)
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) store(published[i], weight[i]);
}

#define KEDGE_UPDATE(Moment)                                                                                                         \
  KEDGE_VECTOR_CLONES void update_some(float* weight, const float* gradient, Moment* first, Moment* second, at::BFloat16* published, \
                                       int64_t begin, int64_t end, const AdamWFactors& f) {                                          \
    update_range(weight, gradient, first, second, published, begin, end, f);                                                         \
  }
KEDGE_UPDATE(float)
KEDGE_UPDATE(at::BFloat16)
#undef KEDGE_UPDATE

template <typename Moment>
void update(const AdamWTensors& tensors, const AdamWFactors& f) {
  auto* weight = tensors.master.mutable_data_ptr<float>();
  const auto* gradient = tensors.gradient.const_data_ptr<float>();
  auto *first = tensors.first.mutable_data_ptr<Moment>(), *second = tensors.second.mutable_data_ptr<Moment>();
  auto* published = tensors.published.defined() ? tensors.published.mutable_data_ptr<at::BFloat16>() : nullptr;
  at::parallel_for(0, tensors.master.numel(), 1 << 15,
                   [&](int64_t begin, int64_t end) { update_some(weight, gradient, first, second, published, begin, end, f); });
}

}  // namespace

AdamWFactors factors_of(const AdamWStep& step) {
  const auto number = static_cast<double>(step.step);
  const double first_correction = 1 - std::pow(step.beta1, number), second_correction = 1 - std::pow(step.beta2, number);
  const auto f = [](double value) { return static_cast<float>(value); };
  return {f(step.grad_scale),
          f(step.beta1),
          f(1 - step.beta1),
          f(step.beta2),
          f(1 - step.beta2),
          f(1 - step.lr * step.weight_decay),
          f(step.lr / first_correction),
          f(1 / std::sqrt(second_correction)),
          f(step.eps)};
}

void adamw_update(const AdamWTensors& tensors, const AdamWStep& step) {
  if (tensors.master.numel() == 0) return;
  const AdamWFactors factors = factors_of(step);
  if (tensors.master.is_cuda()) return cuda::adamw_update(tensors, factors);
  const bool wide = tensors.first.scalar_type() == at::kFloat;
  ensure(!tensors.published.defined() || tensors.published.scalar_type() == at::kBFloat16, "published weights are bf16");
  wide ? update<float>(tensors, factors) : update<at::BFloat16>(tensors, factors);
}

}  // namespace kedge
