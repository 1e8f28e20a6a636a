#include "kedge/model/adapted_linear.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/random.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {
namespace {

// 1 / (1 - dropout) where an output is kept, 0 where it is dropped.
Tensor dropout_mask(const Tensor& like, const AdapterView& adapter, uint64_t seed) {
  Tensor mask = at::empty(like.sizes(), at::kFloat);
  float* out = mask.mutable_data_ptr<float>();
  const Random random(seed, Random::stream_of({0xD50, adapter.place}));
  const auto kept = static_cast<float>(1 / (1 - adapter.dropout));
  const auto draw = [&](int64_t at, int64_t place) {
    out[at] = random.uniform(static_cast<uint64_t>(place)) < adapter.dropout ? 0.0F : kept;
  };
  if (adapter.outputs.empty()) {
    at::parallel_for(0, mask.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) draw(i, i);
    });
  } else {
    const int64_t width = mask.size(1);
    at::parallel_for(0, mask.size(0), 64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (const ParameterPart::Rows& range : adapter.outputs)
          for (int64_t i = 0; i < range.count; ++i) draw(row * width + range.own + i, row * adapter.num_outputs + range.whole + i);
    });
  }
  return mask.to(like.options());
}

bool drops(const AdapterView& adapter, DropoutSeed seed) { return seed && adapter.dropout > 0; }

// A GPU's products scale what they add and take some columns of a matrix as they are, so nothing as wide as the outputs is copied.
bool scales_products(const Tensor& x, const AdapterView& adapter, DropoutSeed seed) { return x.is_cuda() && !drops(adapter, seed); }

// What is left to apply to products of output_gradient().
double factor_of(const Tensor& dy, const AdapterView& adapter, DropoutSeed seed) {
  return scales_products(dy, adapter, seed) ? adapter.scale : 1;
}

// Of B's outputs.
Tensor output_gradient(const Tensor& dy, const AdapterView& adapter, DropoutSeed seed) {
  const Tensor own = dy.narrow(1, adapter.row, adapter.rows);
  if (scales_products(dy, adapter, seed)) return own;
  Tensor gradient = own * adapter.scale;
  if (drops(adapter, seed)) gradient.mul_(dropout_mask(gradient, adapter, *seed));
  return gradient;
}

// Adds the adapter's output to y.
void add_output_(const Tensor& y, const Tensor& x, const AdapterView& adapter, DropoutSeed seed) {
  const Tensor own = y.narrow(1, adapter.row, adapter.rows), inner = linear(x, adapter.a, Tensor());
  if (scales_products(x, adapter, seed)) return add_product_(own, inner, adapter.b.t(), adapter.scale);
  Tensor delta = linear(inner, adapter.b, Tensor());
  if (drops(adapter, seed)) delta.mul_(dropout_mask(delta, adapter, *seed));
  // In fp32: ATen's bf16 sum with a factor rounds once or twice, depending on a value's place, and so on the batch and the threads.
  own.add_(delta.to(at::kFloat), adapter.scale);
}

}  // namespace

Tensor adapted_linear(const Tensor& x, const LinearView& view, DropoutSeed seed, const Tensor& beside) {
  Tensor y = linear(x, view.weight, view.bias, beside);
  if (view.adapters == nullptr) return y;
  for (const AdapterView& adapter : *view.adapters) add_output_(y, x, adapter, seed);
  return y;
}

void add_adapted_linear_(const Tensor& sum, const Tensor& x, const LinearView& view) {
  add_linear_(sum, x, view.weight, view.bias);
  if (view.adapters == nullptr) return;
  for (const AdapterView& adapter : *view.adapters) add_output_(sum, x, adapter, {});
}

Tensor summed_linear(const Tensor& x, const LinearView& view, DropoutSeed seed, const Tensor& beside, const TokenSlices& tokens) {
  LinearView own = view;
  own.bias = Tensor();
  Tensor y = tokens.sum(adapted_linear(x, own, seed));
  if (view.bias.defined()) y.add_(view.bias);
  return y.add_(beside);
}

std::vector<Tensor> inner_gradients(const Tensor& dy, const LinearView& view, DropoutSeed seed) {
  std::vector<Tensor> inner;
  if (view.adapters != nullptr)
    for (const AdapterView& adapter : *view.adapters) inner.push_back(product(output_gradient(dy, adapter, seed), adapter.b));
  return inner;
}

Tensor linear_input_gradient(const Tensor& dy, const LinearView& view, DropoutSeed seed, const std::vector<Tensor>& inner) {
  Tensor dx = product(dy, view.weight);
  for (size_t i = 0; i < inner.size(); ++i) {
    const AdapterView& adapter = (*view.adapters)[i];
    add_product_(dx, inner[i], adapter.a, factor_of(dy, adapter, seed));
  }
  return dx;
}

bool has_gradients(const LinearView& view) {
  if (view.weight_gradient.defined() || view.bias_gradient.defined()) return true;
  return view.adapters != nullptr &&
         std::any_of(view.adapters->begin(), view.adapters->end(), [](const AdapterView& adapter) { return adapter.a_gradient.defined(); });
}

void add_linear_gradients(const Tensor& dy, const Tensor& x, const LinearView& view, DropoutSeed seed, const std::vector<Tensor>& inner) {
  add_weight_gradient(view.weight_gradient, dy, x);
  add_bias_gradient(view.bias_gradient, dy);
  for (size_t i = 0; i < inner.size(); ++i) {
    const AdapterView& adapter = (*view.adapters)[i];
    if (!adapter.a_gradient.defined()) continue;
    const double factor = factor_of(dy, adapter, seed);
    add_weight_gradient(adapter.b_gradient, output_gradient(dy, adapter, seed), linear(x, adapter.a, Tensor()), factor);
    add_weight_gradient(adapter.a_gradient, inner[i], x, factor);
  }
}

}  // namespace kedge
