#pragma once
// One layer of the decoder with its own backward: attention and MLP, each after a norm and added to the residual stream. What is cheap
// to recompute (norms, the activation) is not kept between forward and backward.
#include "kedge/core/tensor.h"
#include "kedge/model/adapted_linear.h"
#include "kedge/model/kernels/attention.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {

struct LayerView {
  NormWeights norm1, norm2, q_norm, k_norm;  // the last two without weights if the family has none
  LinearView qkv, out, gate_up, down;
  AttentionShape shape;
  GateKind gate;
  const TensorRanks* ranks = nullptr;  // that compute the layer together, each with its own heads; null: this one alone. For generation
};

// What all layers of a pass share.
struct PassContext {
  const PackedBatch& batch;
  const Rotation* rotation = nullptr;  // null: learned positions
  DropoutSeed dropout_seed;
  TokenSlices tokens = {};  // of the residual stream and its norms; attention and the MLP see all tokens
};

struct LayerState {
  Tensor x;        // the layer's input; like h and the statistics of both norms, of the tokens that this rank has there
  Normed norm1;    // statistics; the outputs are dropped
  Tensor raw_qkv;  // before the norms of queries and keys, if there are any
  Normed q_norm, k_norm;
  Tensor qkv;  // as attention saw it
  Attended attended;
  Tensor h;  // after attention
  Normed norm2;
  Tensor gate_up;
};

// Queries and keys normalized per head, in a copy of qkv; fills `keep` if it is not null. For families whose q_norm has weights.
[[nodiscard]] Tensor norm_heads(const LayerView& layer, const Tensor& qkv, LayerState* keep);

// The layer's output; fills `keep` if it is not null.
[[nodiscard]] Tensor layer_forward(const LayerView& layer, const PassContext& pass, const Tensor& x, LayerState* keep);
// The gradient of the layer's input (undefined unless requested); those of the weights are added to their buffers. Empties `state`.
[[nodiscard]] Tensor layer_backward(const LayerView& layer, const PassContext& pass, const Tensor& dy, LayerState& state, bool wants_input);

}  // namespace kedge
