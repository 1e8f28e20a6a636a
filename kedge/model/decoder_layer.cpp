#include "kedge/model/decoder_layer.h"

#include <utility>

#include <ATen/ops/empty_like.h>

namespace kedge {
namespace {

Normed statistics_of(Normed normed) {
  normed.out.reset();
  return normed;
}

// Columns [from, from + heads * dim) of qkv as rows of one head each; a single head's would be a view with gaps.
Tensor head_rows(const Tensor& qkv, int64_t from, int64_t heads, int64_t dim) {
  return qkv.narrow(1, from, heads * dim).reshape({-1, dim}).contiguous();
}
void put_head_rows(const Tensor& qkv, int64_t from, int64_t heads, int64_t dim, const Tensor& rows) {
  qkv.narrow(1, from, heads * dim).copy_(rows.view({-1, heads * dim}));
}

void norm_heads_backward_(const LayerView& layer, const Tensor& dqkv, const LayerState& state) {
  const auto one = [&](int64_t from, int64_t heads, const Normed& saved, const NormWeights& weights) {
    const int64_t dim = layer.shape.head_dim;
    const Tensor dx = norm_backward(head_rows(dqkv, from, heads, dim), head_rows(state.raw_qkv, from, heads, dim), saved, weights, {});
    put_head_rows(dqkv, from, heads, dim, dx);
  };
  one(0, layer.shape.num_heads, state.q_norm, layer.q_norm);
  one(layer.shape.num_heads * layer.shape.head_dim, layer.shape.num_kv_heads, state.k_norm, layer.k_norm);
}

}  // namespace

Tensor norm_heads(const LayerView& layer, const Tensor& qkv, LayerState* keep) {
  const AttentionShape& shape = layer.shape;
  Tensor out = qkv.clone();
  const int64_t q = shape.num_heads * shape.head_dim;
  Normed q_normed = norm(head_rows(qkv, 0, shape.num_heads, shape.head_dim), layer.q_norm);
  Normed k_normed = norm(head_rows(qkv, q, shape.num_kv_heads, shape.head_dim), layer.k_norm);
  put_head_rows(out, 0, shape.num_heads, shape.head_dim, q_normed.out);
  put_head_rows(out, q, shape.num_kv_heads, shape.head_dim, k_normed.out);
  if (keep != nullptr) {
    keep->raw_qkv = qkv;
    keep->q_norm = statistics_of(std::move(q_normed));
    keep->k_norm = statistics_of(std::move(k_normed));
  }
  return out;
}

Tensor layer_forward(const LayerView& layer, const PassContext& pass, const Tensor& x, LayerState* keep) {
  Normed norm1 = norm(x, layer.norm1);
  Tensor qkv = adapted_linear(norm1.out, layer.qkv, pass.dropout_seed);
  if (layer.q_norm.weight.defined()) qkv = norm_heads(layer, qkv, keep);
  if (pass.rotation != nullptr) rotate_(qkv, *pass.rotation, false);
  Attended attended = attention(qkv, pass.batch, layer.shape);
  Tensor h = adapted_linear(attended.out, layer.out, pass.dropout_seed, x);
  Normed norm2 = norm(h, layer.norm2);
  Tensor gate_up = adapted_linear(norm2.out, layer.gate_up, pass.dropout_seed);
  Tensor y = adapted_linear(gate(gate_up, layer.gate), layer.down, pass.dropout_seed, h);
  if (keep != nullptr) {
    keep->x = x;
    keep->norm1 = statistics_of(std::move(norm1));
    keep->qkv = std::move(qkv);
    keep->attended = std::move(attended);
    keep->h = std::move(h);
    keep->norm2 = statistics_of(std::move(norm2));
    keep->gate_up = std::move(gate_up);
  }
  return y;
}

Tensor layer_backward(const LayerView& layer, const PassContext& pass, const Tensor& dy, LayerState& state, bool wants_input) {
  const DropoutSeed seed = pass.dropout_seed;
  Tensor dh;
  {
    GateGradient gradient = gate_backward(linear_input_gradient(dy, layer.down, seed), state.gate_up, layer.gate);
    add_linear_gradients(dy, gradient.out, layer.down, seed);
    state.gate_up.reset(), gradient.out.reset();
    add_linear_gradients(gradient.gate_up, norm_again(state.h, state.norm2, layer.norm2), layer.gate_up, seed);
    dh = norm_backward(linear_input_gradient(gradient.gate_up, layer.gate_up, seed), state.h, state.norm2, layer.norm2, dy);
    state.h.reset();
  }
  add_linear_gradients(dh, state.attended.out, layer.out, seed);
  Tensor dqkv = attention_backward(linear_input_gradient(dh, layer.out, seed), state.qkv, state.attended, pass.batch, layer.shape);
  state.qkv.reset(), state.attended = {};
  if (pass.rotation != nullptr) rotate_(dqkv, *pass.rotation, true);
  if (layer.q_norm.weight.defined()) norm_heads_backward_(layer, dqkv, state);
  add_linear_gradients(dqkv, norm_again(state.x, state.norm1, layer.norm1), layer.qkv, seed);
  Tensor dx;
  if (wants_input) dx = norm_backward(linear_input_gradient(dqkv, layer.qkv, seed), state.x, state.norm1, layer.norm1, dh);
  state = {};
  return dx;
}

}  // namespace kedge
