#include "kedge/train/adamw.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/model/cpu_rows.h"
#include "kedge/train/cuda_adamw.h"

namespace kedge {
namespace {

using cpu::store;
using cpu::widen;

template <typename Moment, typename Published>
void update(const AdamWTensors& tensors, const AdamWFactors& f) {
  auto* weight = tensors.master.mutable_data_ptr<float>();
  const auto* gradient = tensors.gradient.const_data_ptr<float>();
  auto *first = tensors.first.mutable_data_ptr<Moment>(), *second = tensors.second.mutable_data_ptr<Moment>();
  auto* published = tensors.published.defined() ? tensors.published.mutable_data_ptr<Published>() : nullptr;
  at::parallel_for(0, tensors.master.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float g = gradient[i] * f.grad_scale;
      const float m = f.beta1 * widen(first[i]) + f.one_minus_beta1 * g;
      const float v = f.beta2 * widen(second[i]) + f.one_minus_beta2 * g * g;
      store(first[i], m);
      store(second[i], v);
      weight[i] = weight[i] * f.keep - f.rate * m / (std::sqrt(v) * f.second_scale + f.eps);
    }
    if (published != nullptr)
      for (int64_t i = begin; i < end; ++i) store(published[i], weight[i]);
  });
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
  wide ? update<float, at::BFloat16>(tensors, factors) : update<at::BFloat16, at::BFloat16>(tensors, factors);
}

}  // namespace kedge
