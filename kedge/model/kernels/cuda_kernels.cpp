#include "kedge/model/kernels/cuda_kernels.h"

#include <algorithm>

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cuda_head_norms_launch.h"
#include "kedge/model/kernels/cuda_launch.h"
#include "kedge/model/kernels/cuda_norm_launch.h"

namespace kedge::cuda {
namespace {

Type type_of(const Tensor& tensor) {
  ensure(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16, "a CUDA kernel for ",
         c10::toString(tensor.scalar_type()));
  return tensor.scalar_type() == at::kFloat ? Type::f32 : Type::bf16;
}

const void* data(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }
void* mutable_data(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; }
float* floats(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr; }

// The device of a tensor, and the error check of a launch.
template <typename F>
void run_on(const Tensor& tensor, F&& launch) {
  if (tensor.numel() == 0) return;  // a grid has at least one block
  const c10::cuda::CUDAGuard guard(tensor.device());
  launch(c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void norm(const Tensor& x, const NormWeights& weights, Normed& saved) {
  const int64_t rows = x.size(0), size = x.size(1);
  const bool centred = weights.kind == NormKind::layer, known = saved.rstd.defined();
  if (!known) {
    saved.rstd = at::empty({rows}, x.options().dtype(at::kFloat));
    if (centred) saved.mean = at::empty_like(saved.rstd);
  }
  saved.out = at::empty_like(x);
  run_on(x, [&](cudaStream_t stream) {
    launch_norm({type_of(x), data(x), data(weights.weight), data(weights.bias), mutable_data(saved.out), floats(saved.mean),
                 floats(saved.rstd), rows, size, known, static_cast<float>(weights.eps)},
                stream);
  });
}

// Adds the sums of the parts' columns; of nothing without a gradient.
void add_column_sums(const Tensor& gradient, const Tensor& parts) {
  if (!gradient.defined()) return;
  ensure(gradient.is_contiguous(), "the gradient of a norm is not contiguous");
  run_on(parts, [&](cudaStream_t stream) {
    launch_add_column_sums({floats(parts), parts.size(0), parts.stride(0), gradient.numel(), floats(gradient)}, stream);
  });
}

void norm_backward(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights, const Tensor& beside,
                   const Tensor& dx) {
  const int64_t rows = x.size(0), size = x.size(1);
  const int num_blocks = norm_backward_blocks(rows, size);
  const auto parts_of = [&](const Tensor& gradient) {
    return gradient.defined() ? at::empty({num_blocks, size}, x.options().dtype(at::kFloat)) : Tensor();
  };
  const Tensor dw = parts_of(weights.weight_gradient), db = parts_of(weights.bias_gradient);
  run_on(x, [&](cudaStream_t stream) {
    launch_norm_backward({type_of(x), data(dout), data(x), data(weights.weight), data(beside), floats(saved.mean), floats(saved.rstd),
                          mutable_data(dx), floats(dw), floats(db), rows, size, num_blocks},
                         stream);
  });
  add_column_sums(weights.weight_gradient, dw);
  add_column_sums(weights.bias_gradient, db);
}

void silu_gate_backward(const Tensor& dout, const Tensor& gate_up, const Tensor& dgate_up, const Tensor& out) {
  run_on(out, [&](cudaStream_t stream) {
    launch_silu_gate({type_of(out), data(dout), data(gate_up), mutable_data(dgate_up), mutable_data(out), out.size(0), out.size(1)},
                     stream);
  });
}

void silu_gate(const Tensor& gate_up, const Tensor& out) { silu_gate_backward({}, gate_up, {}, out); }

void rotate(const Tensor& x, const Rotation& rotation, bool backwards) {
  run_on(x, [&](cudaStream_t stream) {
    launch_rotate({type_of(x), mutable_data(x), floats(rotation.cos), floats(rotation.sin), x.size(0), x.size(1), rotation.num_heads,
                   rotation.head_dim, rotation.dim / 2, backwards ? -1.0F : 1.0F},
                  stream);
  });
}

void logit_stats(const Tensor& logits, const Tensor& targets, LogitStats& stats) {
  run_on(logits, [&](cudaStream_t stream) {
    launch_logit_stats(
        {type_of(logits), Type::f32, data(logits), targets.const_data_ptr<int64_t>(), floats(stats.logprob), floats(stats.log_sum),
         floats(stats.entropy), nullptr, nullptr, nullptr, logits.size(0), logits.size(1), static_cast<float>(stats.temperature)},
        stream);
  });
}

}  // namespace

const OpKernels kernels = {norm, norm_backward, silu_gate, silu_gate_backward, rotate, logit_stats};

void logit_gradient(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy,
                    const Tensor& out) {
  run_on(logits, [&](cudaStream_t stream) {
    launch_logit_gradient({type_of(logits), type_of(out), data(logits), targets.const_data_ptr<int64_t>(), nullptr, floats(stats.log_sum),
                           floats(stats.entropy), floats(dlogprob), floats(dentropy), mutable_data(out), logits.size(0), logits.size(1),
                           static_cast<float>(stats.temperature)},
                          stream);
  });
}

Tensor join_attended(const Tensor& out, const Tensor& sum, const Tensor& more, const Tensor& more_sum) {
  const int64_t rows = out.size(0), heads = sum.size(0), dim = out.size(1) / heads;
  ensure(out.is_contiguous() && more.is_contiguous() && dim % 8 == 0, "attention in two parts that cannot be joined");
  const Tensor joined = at::empty({rows, heads}, sum.options());
  run_on(out, [&](cudaStream_t stream) {
    launch_join({.type = type_of(out),
                 .out = mutable_data(out),
                 .more = data(more),
                 .sum = floats(sum),
                 .more_sum = floats(more_sum),
                 .sum_row = sum.stride(1),
                 .sum_head = sum.stride(0),
                 .more_row = more_sum.stride(1),
                 .more_head = more_sum.stride(0),
                 .joined = floats(joined),
                 .rows = rows,
                 .heads = static_cast<int>(heads),
                 .dim = static_cast<int>(dim)},
                stream);
  });
  return joined.t();
}

bool has_head_norms(const Tensor& qkv, const HeadNorms& norms) {
  const auto is_plain = [](const NormWeights& weights) { return weights.kind == NormKind::rms && !weights.bias.defined(); };
  return qkv.is_cuda() && is_plain(norms.q) && is_plain(norms.k) && has_head_norms(norms.dim);
}

HeadNormed norm_heads(const Tensor& qkv, const HeadNorms& norms) {
  const auto floats_here = qkv.options().dtype(at::kFloat);
  const int64_t rows = qkv.size(0);
  HeadNormed result{.out = at::empty_like(qkv),
                    .q = {{}, {}, at::empty({rows * norms.num_q}, floats_here)},
                    .k = {{}, {}, at::empty({rows * norms.num_k}, floats_here)}};
  run_on(qkv, [&](cudaStream_t stream) {
    launch_head_norms({type_of(qkv), data(qkv), data(norms.q.weight), data(norms.k.weight), mutable_data(result.out), floats(result.q.rstd),
                       floats(result.k.rstd), rows, norms.num_q, norms.num_k, qkv.size(1) / norms.dim, norms.dim,
                       static_cast<float>(norms.q.eps), static_cast<float>(norms.k.eps)},
                      stream);
  });
  return result;
}

void norm_heads_backward_(const Tensor& dqkv, const Tensor& qkv, const Normed& q, const Normed& k, const HeadNorms& norms) {
  const int64_t rows = qkv.size(0);
  // Enough to fill the device; each writes its part of the weights' gradients.
  const auto num_blocks = static_cast<int>(std::clamp<int64_t>(rows * (norms.num_q + norms.num_k) / 8, 1, 1056));
  const Tensor dweights = at::empty({num_blocks, 2, norms.dim}, qkv.options().dtype(at::kFloat));
  run_on(qkv, [&](cudaStream_t stream) {
    launch_head_norms_backward(
        {type_of(qkv), mutable_data(dqkv), data(qkv), data(norms.q.weight), data(norms.k.weight), floats(q.rstd), floats(k.rstd),
         floats(dweights), rows, norms.num_q, norms.num_k, qkv.size(1) / norms.dim, norms.dim, num_blocks},
        stream);
  });
  add_column_sums(norms.q.weight_gradient, dweights.select(1, 0));
  add_column_sums(norms.k.weight_gradient, dweights.select(1, 1));
}

}  // namespace kedge::cuda
