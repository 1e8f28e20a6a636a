#include "kedge/model/decoder_layer.h"

#include <utility>
#include <vector>

#include "kedge/model/kernels/head_norms.h"

namespace kedge {
namespace {

Normed statistics_of(Normed normed) {
  normed.out.reset();
  return normed;
}

HeadNorms head_norms_of(const LayerView& layer) {
  return {
      .q = layer.q_norm, .k = layer.k_norm, .num_q = layer.shape.num_heads, .num_k = layer.shape.num_kv_heads, .dim = layer.shape.head_dim};
}

// x plus the outputs of `out` or `down`, of all ranks.
Tensor add_outputs(const PassContext& pass, const LinearView& linear, const Tensor& in, const Tensor& x) {
  return pass.tokens.is_split() ? summed_linear(in, linear, pass.dropout_seed, x, pass.tokens)
                                : adapted_linear(in, linear, pass.dropout_seed, x);
}

// The gradient of what all ranks took in: each has that which comes from its own heads or its share of the MLP.
Tensor input_gradient(const PassContext& pass, const LinearView& linear, const Tensor& dy, const std::vector<Tensor>& inner) {
  return pass.tokens.sum(linear_input_gradient(dy, linear, pass.dropout_seed, inner));
}

// What a linear layer took in: normed rows of all tokens, computed once more from the norm's input. Undefined where nothing of it is
// trained: then ranks need not put those rows together.
Tensor taken_in(const PassContext& pass, const LinearView& linear, const Tensor& x, const Normed& saved, const NormWeights& norm) {
  return has_gradients(linear) ? pass.tokens.all(norm_again(x, saved, norm)) : Tensor();
}

}  // namespace

Tensor norm_heads(const LayerView& layer, const Tensor& qkv, LayerState* keep) {
  HeadNormed normed = norm_heads(qkv, head_norms_of(layer));
  if (keep != nullptr) {
    keep->raw_qkv = qkv;
    keep->q_norm = std::move(normed.q);
    keep->k_norm = std::move(normed.k);
  }
  return normed.out;
}

Tensor layer_forward(const LayerView& layer, const PassContext& pass, const Tensor& x, LayerState* keep) {
  Normed norm1 = norm(x, layer.norm1);
  Tensor qkv = adapted_linear(pass.tokens.all(norm1.out), layer.qkv, pass.dropout_seed);
  if (layer.q_norm.weight.defined()) qkv = norm_heads(layer, qkv, keep);
  if (pass.rotation != nullptr) rotate_(qkv, *pass.rotation, false);
  Attended attended = attention(qkv, pass.batch, layer.shape);
  Tensor h = add_outputs(pass, layer.out, attended.out, x);
  Normed norm2 = norm(h, layer.norm2);
  Tensor gate_up = adapted_linear(pass.tokens.all(norm2.out), layer.gate_up, pass.dropout_seed);
  Tensor y = add_outputs(pass, layer.down, gate(gate_up, layer.gate), h);
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
  Tensor dh, dqkv;
  {
    Tensor all_dy = pass.tokens.all(dy);
    std::vector<Tensor> inner = inner_gradients(all_dy, layer.down, seed);
    GateGradient gradient = gate_backward(linear_input_gradient(all_dy, layer.down, seed, inner), state.gate_up, layer.gate);
    add_linear_gradients(all_dy, gradient.out, layer.down, seed, inner);
    all_dy.reset(), state.gate_up.reset(), gradient.out.reset();
    inner = inner_gradients(gradient.gate_up, layer.gate_up, seed);
    add_linear_gradients(gradient.gate_up, taken_in(pass, layer.gate_up, state.h, state.norm2, layer.norm2), layer.gate_up, seed, inner);
    dh = norm_backward(input_gradient(pass, layer.gate_up, gradient.gate_up, inner), state.h, state.norm2, layer.norm2, dy);
    state.h.reset();
  }
  {
    const Tensor all_dh = pass.tokens.all(dh);
    const std::vector<Tensor> inner = inner_gradients(all_dh, layer.out, seed);
    add_linear_gradients(all_dh, state.attended.out, layer.out, seed, inner);
    dqkv = attention_backward(linear_input_gradient(all_dh, layer.out, seed, inner), state.qkv, state.attended, pass.batch, layer.shape);
    state.qkv.reset(), state.attended = {};
  }
  if (pass.rotation != nullptr) rotate_(dqkv, *pass.rotation, true);
  if (layer.q_norm.weight.defined()) norm_heads_backward_(dqkv, state.raw_qkv, state.q_norm, state.k_norm, head_norms_of(layer));
  const std::vector<Tensor> inner = inner_gradients(dqkv, layer.qkv, seed);
  add_linear_gradients(dqkv, taken_in(pass, layer.qkv, state.x, state.norm1, layer.norm1), layer.qkv, seed, inner);
  Tensor dx;
  if (wants_input) dx = norm_backward(input_gradient(pass, layer.qkv, dqkv, inner), state.x, state.norm1, layer.norm1, dh);
  state = {};
  return dx;
}

}  // namespace kedge
