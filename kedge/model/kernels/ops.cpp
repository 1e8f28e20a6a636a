#include "kedge/model/kernels/ops.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/where.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_activations.h"
#include "kedge/model/kernels/cpu_kernels.h"
#include "kedge/model/kernels/cpu_linear.h"
#include "kedge/model/kernels/cuda_kernels.h"

namespace kedge {
namespace {

const OpKernels& kernels_of(const Tensor& x) { return x.is_cuda() ? cuda::kernels : cpu::kernels; }

bool has_cpu_kernel(const Tensor& x) { return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16); }

Tensor activate(const Tensor& x, Activation activation) {
  if (has_cpu_kernel(x)) {
    Tensor out = at::empty(x.sizes(), x.options());
    cpu::activate(x.contiguous(), activation, out);
    return out;
  }
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
    case Activation::relu2:
      return at::relu(x).square_();
  }
  throw Bug("an activation without a formula");
}

Tensor activate_backward(const Tensor& dout, const Tensor& x, Activation activation) {
  if (has_cpu_kernel(x)) {
    Tensor dx = at::empty(x.sizes(), x.options());
    cpu::activate_backward(dout.contiguous(), x.contiguous(), activation, dx);
    return dx;
  }
  switch (activation) {
    case Activation::silu:
      return at::silu_backward(dout, x);
    case Activation::gelu:
      return at::gelu_backward(dout, x, "none");
    case Activation::gelu_tanh:
      return at::gelu_backward(dout, x, "tanh");
    case Activation::relu:
      return at::where(x.gt(0), dout, at::zeros({}, dout.options()));
    case Activation::relu2:
      return dout * at::relu(x) * 2;
  }
  throw Bug("an activation without a derivative");
}

bool is_fp32_on_cpu(const Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

bool is_plain_swiglu(const GateKind& kind) { return kind.gated && kind.activation == Activation::silu; }

}  // namespace

Normed norm(const Tensor& x, const NormWeights& weights) {
  Normed result;
  kernels_of(x).norm(x, weights, result);
  return result;
}

Tensor norm_again(const Tensor& x, const Normed& saved, const NormWeights& weights) {
  Normed result{{}, saved.mean, saved.rstd};
  kernels_of(x).norm(x, weights, result);
  return result.out;
}

Tensor norm_backward(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights, const Tensor& beside) {
  Tensor dx = at::empty_like(x);
  kernels_of(x).norm_backward(dout, x, saved, weights, beside, dx);
  return dx;
}

Tensor gate(const Tensor& gate_up, const GateKind& kind) {
  if (!kind.gated) return activate(gate_up, kind.activation);
  const int64_t size = gate_up.size(1) / 2;
  if (!is_plain_swiglu(kind)) return activate(gate_up.narrow(1, 0, size), kind.activation).mul_(gate_up.narrow(1, size, size));
  Tensor out = at::empty({gate_up.size(0), size}, gate_up.options());
  kernels_of(gate_up).silu_gate(gate_up, out);
  return out;
}

GateGradient gate_backward(const Tensor& dout, const Tensor& gate_up, const GateKind& kind) {
  if (!kind.gated) return {activate_backward(dout, gate_up, kind.activation), activate(gate_up, kind.activation)};
  const int64_t size = gate_up.size(1) / 2;
  GateGradient gradient{at::empty_like(gate_up), {}};
  if (!is_plain_swiglu(kind)) {
    const Tensor in = gate_up.narrow(1, 0, size), up = gate_up.narrow(1, size, size);
    const Tensor activated = activate(in, kind.activation);
    gradient.out = activated * up;
    gradient.gate_up.narrow(1, size, size).copy_(dout * activated);
    gradient.gate_up.narrow(1, 0, size).copy_(activate_backward(dout * up, in, kind.activation));
    return gradient;
  }
  gradient.out = at::empty_like(dout);
  kernels_of(gate_up).silu_gate_backward(dout, gate_up, gradient.gate_up, gradient.out);
  return gradient;
}

void rotate_(const Tensor& x, const Rotation& rotation, bool backwards) { kernels_of(x).rotate(x, rotation, backwards); }

void add_rows_(const Tensor& table, const Tensor& ids, const Tensor& rows) {
  if (rows.is_cuda()) {
    table.index_add_(0, ids, rows.to(at::kFloat));
  } else {
    cpu::add_rows(table, ids, rows);
  }
}

LogitStats logit_stats(const Tensor& logits, const Tensor& targets, bool with_entropy, double temperature) {
  const auto floats = logits.options().dtype(at::kFloat);
  LogitStats stats{at::empty({logits.size(0)}, floats), at::empty({logits.size(0)}, floats),
                   with_entropy ? at::empty({logits.size(0)}, floats) : Tensor(), temperature};
  kernels_of(logits).logit_stats(logits, targets, stats);
  return stats;
}

Tensor logit_gradient(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy,
                      at::ScalarType dtype) {
  if (!logits.is_cuda()) {
    ensure(logits.scalar_type() == dtype, "on the CPU logits have their weights' type");
    cpu::logit_gradient_(logits, targets, stats, dlogprob, dentropy);
    return logits;
  }
  const Tensor out = logits.scalar_type() == dtype ? logits : at::empty(logits.sizes(), logits.options().dtype(dtype));
  cuda::logit_gradient(logits, targets, stats, dlogprob, dentropy, out);
  return out;
}

Tensor linear(const Tensor& any, const Tensor& weight, const Tensor& bias, const Tensor& beside) {
  const Tensor x = any.contiguous();
  if (cpu::linear_suits(x, weight)) {
    Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
    cpu::linear(x, weight, out, {bias, beside});
    return out;
  }
  if (!beside.defined()) return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  Tensor sum = at::addmm(beside, x, weight.t());
  if (bias.defined()) sum.add_(bias);
  return sum;
}

void add_linear_(const Tensor& sum, const Tensor& any, const Tensor& weight, const Tensor& bias) {
  const Tensor x = any.contiguous();
  if (cpu::linear_suits(x, weight)) return cpu::linear(x, weight, sum, {bias, sum});
  Tensor out = sum;
  at::addmm_out(out, out, x, weight.t());
  if (bias.defined()) out.add_(bias);
}

Tensor product(const Tensor& a, const Tensor& b) {
  if (!is_fp32_on_cpu(a)) return at::mm(a, b);
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  cpu::multiply(a.contiguous(), b.contiguous(), out);
  return out;
}

void add_product_(const Tensor& sum, const Tensor& a, const Tensor& b, double factor) {
  ensure(factor == 1 || a.is_cuda(), "a CPU's product with a factor");
  if (is_fp32_on_cpu(a)) return cpu::multiply(a.contiguous(), b.contiguous(), sum, sum);
  Tensor out = sum;
  at::addmm_out(out, out, a, b, 1, factor);
}

void add_weight_gradient(const Tensor& gradient, const Tensor& dy, const Tensor& x, double factor) {
  if (!gradient.defined()) return;
  ensure(factor == 1 || dy.is_cuda(), "a CPU's product with a factor");
  if (is_fp32_on_cpu(dy)) return cpu::add_weight_gradient(gradient, dy.contiguous(), x.contiguous());
  Tensor sum = gradient;
  if (dy.scalar_type() == at::kFloat) {
    at::addmm_out(sum, sum, dy.t(), x, 1, factor);
  } else if (dy.is_cuda()) {
    at::addmm_out(sum, sum, dy.t(), x, at::kFloat, 1, factor);  // bf16 products summed in fp32, straight into the buffer
  } else {
    sum.add_(at::mm(dy.t(), x));
  }
}

void add_bias_gradient(const Tensor& gradient, const Tensor& dy) {
  if (!gradient.defined()) return;
  if (dy.is_cpu()) return cpu::add_row_sums(gradient, dy.contiguous());
  gradient.add_(dy.sum(0, false, at::kFloat));
}

}  // namespace kedge
