#pragma once
// The network's parts as textbooks write them, in ATen operators that record gradients: what ours are compared with, in double precision.
#include <cmath>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include "kedge/model/kernels/attention.h"
#include "kedge/model/kernels/ops.h"

namespace kedge::testing {

inline Tensor plain_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, NormKind kind, double eps) {
  const Tensor centred = kind == NormKind::layer ? x - x.mean(-1, true) : x;
  const Tensor out = centred / (centred.square().mean(-1, true) + eps).sqrt() * weight;
  return bias.defined() ? out + bias : out;
}

// Channel i of a head turns with channel i + dim / 2.
inline Tensor plain_rotation(const Tensor& x, const Rotation& rotation) {
  const int64_t half = rotation.dim / 2;
  const Tensor cos = rotation.cos.to(x.scalar_type()), sin = rotation.sin.to(x.scalar_type());
  std::vector<Tensor> columns;
  for (int64_t head = 0; head < rotation.num_heads; ++head) {
    const int64_t from = head * rotation.head_dim;
    const Tensor a = x.narrow(1, from, half), b = x.narrow(1, from + half, half);
    columns.push_back(a * cos - b * sin);
    columns.push_back(b * cos + a * sin);
    columns.push_back(x.narrow(1, from + rotation.dim, rotation.head_dim - rotation.dim));
  }
  const int64_t turned = rotation.num_heads * rotation.head_dim;
  columns.push_back(x.narrow(1, turned, x.size(1) - turned));
  return at::cat(columns, 1);
}

inline Tensor plain_attention(const Tensor& qkv, const std::vector<int64_t>& lengths, const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, group = shape.num_heads / shape.num_kv_heads;
  std::vector<Tensor> rows;
  int64_t start = 0;
  for (const int64_t length : lengths) {
    const auto head = [&](int64_t index) { return qkv.narrow(0, start, length).narrow(1, index * dim, dim); };
    const Tensor at = at::arange(length, at::kLong);
    const Tensor ahead = at.unsqueeze(0) - at.unsqueeze(1);
    Tensor unseen = ahead.gt(0);
    if (shape.window > 0) unseen = unseen.logical_or(ahead.le(-shape.window));
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < shape.num_heads; ++h) {
      const Tensor k = head(shape.num_heads + h / group), v = head(shape.num_heads + shape.num_kv_heads + h / group);
      const Tensor scores = at::matmul(head(h), k.t()) / std::sqrt(static_cast<double>(dim));
      heads.push_back(at::matmul(scores.masked_fill(unseen, -INFINITY).softmax(-1), v));
    }
    rows.push_back(at::cat(heads, 1));
    start += length;
  }
  return at::cat(rows);
}

}  // namespace kedge::testing
