#include "kedge/model/decoder_layer.h"

#include <gtest/gtest.h>

#include <ATen/ops/gelu.h>
#include <ATen/ops/mm.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

#include "tests/support/plain_network.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

constexpr int64_t kHidden = 20, kMlp = 28;
const std::vector<int64_t> kRowLengths = {5, 9, 1};
constexpr int64_t kTokens = 15;

struct LayerKind {
  const char* name;
  NormKind norm;
  bool bias, qk_norm, rotary;
  AttentionShape shape;
  GateKind gate;
};
const LayerKind kLayerKinds[] = {{"llama", NormKind::rms, false, false, true, {4, 2, 6, 0}, {Activation::silu, true}},
                               {"mistral", NormKind::rms, false, false, true, {4, 2, 6, 3}, {Activation::silu, true}},
                               {"qwen3", NormKind::rms, false, true, true, {4, 2, 10, 0}, {Activation::silu, true}},
                               {"qwen3 with one head of keys", NormKind::rms, false, true, true, {2, 1, 10, 0}, {Activation::silu, true}},
                               {"gpt2", NormKind::layer, true, false, false, {2, 2, 10, 0}, {Activation::gelu_tanh, false}}};

NormWeights norm_of(int64_t size, NormKind kind, bool bias, uint64_t seed) {
  return {normals({size}, seed),
          bias ? normals({size}, seed + 1) : Tensor(),
          at::zeros({size}),
          bias ? at::zeros({size}) : Tensor(),
          kind,
          1e-5};
}
LinearView linear_of(int64_t out, int64_t in, bool bias, uint64_t seed) {
  return {normals({out, in}, seed, 0.3), bias ? normals({out}, seed + 1) : Tensor(), at::zeros({out, in}),
          bias ? at::zeros({out}) : Tensor()};
}

LayerView layer_of(const LayerKind& family) {
  const AttentionShape& shape = family.shape;
  LayerView layer;
  layer.norm1 = norm_of(kHidden, family.norm, family.bias, 10);
  layer.norm2 = norm_of(kHidden, family.norm, family.bias, 12);
  if (family.qk_norm)
    layer.q_norm = norm_of(shape.head_dim, NormKind::rms, false, 14), layer.k_norm = norm_of(shape.head_dim, NormKind::rms, false, 16);
  layer.qkv = linear_of((shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim, kHidden, family.bias, 18);
  layer.out = linear_of(kHidden, shape.num_heads * shape.head_dim, family.bias, 20);
  layer.gate_up = linear_of(family.gate.gated ? 2 * kMlp : kMlp, kHidden, family.bias, 22);
  layer.down = linear_of(kHidden, kMlp, family.bias, 24);
  layer.shape = shape;
  layer.gate = family.gate;
  return layer;
}

// The same layer with weights in double precision that record gradients.
class PlainLayer {
 public:
  explicit PlainLayer(const LayerView& layer) : layer_(layer) {}

  Tensor run(const Tensor& x, const Rotation* rotation) {
    const AttentionShape& shape = layer_.shape;
    Tensor qkv = project(normed(x, layer_.norm1), layer_.qkv);
    if (layer_.q_norm.weight.defined()) {
      std::vector<Tensor> heads;
      for (int64_t h = 0; h < shape.num_heads + 2 * shape.num_kv_heads; ++h) {
        const Tensor head = qkv.narrow(1, h * shape.head_dim, shape.head_dim);
        const bool value = h >= shape.num_heads + shape.num_kv_heads;
        heads.push_back(value ? head : normed(head, h < shape.num_heads ? layer_.q_norm : layer_.k_norm));
      }
      qkv = at::cat(heads, 1);
    }
    if (rotation != nullptr) qkv = testing::plain_rotation(qkv, *rotation);
    const Tensor h = x + project(testing::plain_attention(qkv, kRowLengths, shape), layer_.out);
    const Tensor up = project(normed(h, layer_.norm2), layer_.gate_up);
    const Tensor inside =
        layer_.gate.gated ? up.narrow(1, 0, kMlp) * up.narrow(1, 0, kMlp).sigmoid() * up.narrow(1, kMlp, kMlp) : at::gelu(up, "tanh");
    return h + project(inside, layer_.down);
  }

  // Pairs of our gradient and the recorded one.
  [[nodiscard]] const std::vector<std::pair<Tensor, Tensor>>& weights() const { return weights_; }

 private:
  Tensor recorded(const Tensor& value, const Tensor& gradient) {
    for (const auto& [known, at] : leaves_)
      if (known.is_same(value)) return at;
    leaves_.emplace_back(value, leaf(value));
    weights_.emplace_back(gradient, leaves_.back().second);
    return leaves_.back().second;
  }
  Tensor normed(const Tensor& x, const NormWeights& norm) {
    return testing::plain_norm(x, recorded(norm.weight, norm.weight_gradient),
                               norm.bias.defined() ? recorded(norm.bias, norm.bias_gradient) : Tensor(), norm.kind, norm.eps);
  }
  Tensor project(const Tensor& x, const LinearView& linear) {
    const Tensor y = at::mm(x, recorded(linear.weight, linear.weight_gradient).t());
    return linear.bias.defined() ? y + recorded(linear.bias, linear.bias_gradient) : y;
  }

  const LayerView& layer_;
  std::vector<std::pair<Tensor, Tensor>> leaves_, weights_;
};

PackedBatch batch() {
  std::vector<std::vector<int32_t>> rows;
  for (const int64_t length : kRowLengths) rows.emplace_back(static_cast<size_t>(length), 0);
  return pack_rows(rows, at::kCPU);
}

Rotation rotation_of(const AttentionShape& shape) {
  const Tensor angles = normals({kTokens, shape.head_dim / 2}, 40);
  return {angles.cos(), angles.sin(), shape.num_heads + shape.num_kv_heads, shape.head_dim, shape.head_dim};
}

TEST(DecoderLayer, OutputAndEveryGradientEqualThePlainFormulation) {
  for (const LayerKind& family : kLayerKinds) {
    SCOPED_TRACE(family.name);
    const LayerView layer = layer_of(family);
    const PackedBatch packed = batch();
    const Rotation rotation = rotation_of(family.shape);
    const PassContext pass{packed, family.rotary ? &rotation : nullptr, {}};
    const Tensor x = normals({kTokens, kHidden}, 1), dy = normals({kTokens, kHidden}, 2);
    LayerState state;
    const Tensor y = layer_forward(layer, pass, x, &state);
    EXPECT_TRUE(same_bits(y, layer_forward(layer, pass, x, nullptr)));
    const Tensor dx = layer_backward(layer, pass, dy, state, true);

    PlainLayer plain(layer);
    const Tensor x_leaf = leaf(x);
    const Tensor wanted = plain.run(x_leaf, pass.rotation);
    backward((wanted * dy.to(at::kDouble)).sum());
    EXPECT_LT(relative_error(y, wanted), 1e-5);
    EXPECT_LT(relative_error(dx, x_leaf.grad()), 1e-5);
    for (const auto& [gradient, recorded] : plain.weights()) EXPECT_LT(relative_error(gradient, recorded.grad()), 1e-5) << gradient.sizes();
  }
}

TEST(DecoderLayer, TheStateIsEmptyAfterTheBackwardAndAnUnwantedInputHasNoGradient) {
  const LayerView layer = layer_of(kLayerKinds[0]);
  const PackedBatch packed = batch();
  const Rotation rotation = rotation_of(layer.shape);
  const PassContext pass{packed, &rotation, {}};
  LayerState state;
  static_cast<void>(layer_forward(layer, pass, normals({kTokens, kHidden}, 1), &state));
  EXPECT_TRUE(state.x.defined() && state.qkv.defined() && state.h.defined() && state.gate_up.defined());
  EXPECT_FALSE(state.norm1.out.defined() || state.norm2.out.defined());  // computed again instead of kept
  EXPECT_FALSE(layer_backward(layer, pass, normals({kTokens, kHidden}, 2), state, false).defined());
  EXPECT_FALSE(state.x.defined() || state.qkv.defined() || state.attended.out.defined() || state.h.defined() || state.gate_up.defined());
}

}  // namespace
}  // namespace kedge
