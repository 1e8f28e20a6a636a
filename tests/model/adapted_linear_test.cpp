#include "kedge/model/adapted_linear.h"

#include <gtest/gtest.h>

#include <ATen/ops/mm.h>

#include "kedge/core/autograd.h"
#include "kedge/model/kernels/ops.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

constexpr int64_t kRows = 9, kIn = 12, kOut = 10, kRank = 3;

// Outputs 2..7 have an adapter of scale 2, outputs 7..10 one of scale 0.5.
struct Layer {
  explicit Layer(double dropout = 0) {
    adapters = {adapter(2, 5, 2, dropout, 0), adapter(7, 3, 0.5, dropout, 1)};
    view = {normals({kOut, kIn}, 1), normals({kOut}, 2), at::zeros({kOut, kIn}), at::zeros({kOut}), &adapters};
  }

  static AdapterView adapter(int64_t row, int64_t rows, double scale, double dropout, uint64_t place) {
    return {normals({kRank, kIn}, 10 + place),
            normals({rows, kRank}, 20 + place),
            at::zeros({kRank, kIn}),
            at::zeros({rows, kRank}),
            row,
            rows,
            scale,
            dropout,
            place};
  }

  std::vector<AdapterView> adapters;
  LinearView view;
  Tensor x = normals({kRows, kIn}, 3), dy = normals({kRows, kOut}, 4), beside = normals({kRows, kOut}, 5);
};

Tensor input_gradient(const Layer& layer, DropoutSeed seed = {}) {
  return linear_input_gradient(layer.dy, layer.view, seed, inner_gradients(layer.dy, layer.view, seed));
}
void add_gradients(const Layer& layer, DropoutSeed seed = {}) {
  add_linear_gradients(layer.dy, layer.x, layer.view, seed, inner_gradients(layer.dy, layer.view, seed));
}

TEST(AdaptedLinear, OutputAndGradientsEqualThePlainFormulation) {
  const Layer layer;
  const Tensor y = adapted_linear(layer.x, layer.view, {}, layer.beside);
  const Tensor dx = input_gradient(layer);
  add_gradients(layer);

  const Tensor x = leaf(layer.x), weight = leaf(layer.view.weight), bias = leaf(layer.view.bias);
  const Tensor a0 = leaf(layer.adapters[0].a), b0 = leaf(layer.adapters[0].b), a1 = leaf(layer.adapters[1].a),
               b1 = leaf(layer.adapters[1].b);
  const Tensor delta =
      at::cat({at::zeros({kRows, 2}, at::kDouble), 2 * at::mm(at::mm(x, a0.t()), b0.t()), 0.5 * at::mm(at::mm(x, a1.t()), b1.t())}, 1);
  const Tensor wanted = at::mm(x, weight.t()) + bias + delta + layer.beside.to(at::kDouble);
  backward((wanted * layer.dy.to(at::kDouble)).sum());
  EXPECT_LT(relative_error(y, wanted), 1e-5);
  EXPECT_LT(relative_error(dx, x.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.view.weight_gradient, weight.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.view.bias_gradient, bias.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.adapters[0].a_gradient, a0.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.adapters[0].b_gradient, b0.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.adapters[1].a_gradient, a1.grad()), 1e-5);
  EXPECT_LT(relative_error(layer.adapters[1].b_gradient, b1.grad()), 1e-5);
}

TEST(AdaptedLinear, WithoutAdaptersItIsTheLinearLayer) {
  Layer layer;
  layer.view.adapters = nullptr;
  EXPECT_TRUE(same_bits(adapted_linear(layer.x, layer.view, {}), linear(layer.x, layer.view.weight, layer.view.bias)));
  const std::vector<AdapterView> none;
  layer.view.adapters = &none;
  EXPECT_TRUE(same_bits(adapted_linear(layer.x, layer.view, {}), linear(layer.x, layer.view.weight, layer.view.bias)));
}

TEST(AdaptedLinear, FrozenAdaptersKeepNoGradients) {
  Layer layer;
  for (AdapterView& adapter : layer.adapters) adapter.a_gradient.reset(), adapter.b_gradient.reset();
  layer.view.weight_gradient.reset(), layer.view.bias_gradient.reset();
  add_gradients(layer);
  EXPECT_TRUE(same_bits(input_gradient(layer), input_gradient(Layer())));
}

TEST(AdaptedLinear, OutputsAreDroppedOnlyUnderASeedAndTheSameOnesAgain) {
  const Layer layer(0.5), plain;
  EXPECT_TRUE(same_bits(adapted_linear(layer.x, layer.view, {}), adapted_linear(plain.x, plain.view, {})));
  EXPECT_TRUE(same_bits(adapted_linear(layer.x, layer.view, 7), adapted_linear(layer.x, layer.view, 7)));
  EXPECT_FALSE(same_bits(adapted_linear(layer.x, layer.view, 7), adapted_linear(layer.x, layer.view, 8)));
  EXPECT_TRUE(same_bits(adapted_linear(plain.x, plain.view, 7), adapted_linear(plain.x, plain.view, {})));  // nothing to drop
}

// 60 outputs are no multiple of a vector's width, and the scale is no power of two.
TEST(AdaptedLinear, ARowHasTheSameBitsAloneAndInABatchInBf16) {
  const auto matrix = [](int64_t rows, int64_t columns, uint64_t seed) { return normals({rows, columns}, seed).to(at::kBFloat16); };
  std::vector<AdapterView> adapters = {{matrix(kRank, kIn, 1), matrix(60, kRank, 2), {}, {}, 0, 60, 1.5, 0, 0}};
  const LinearView view{matrix(60, kIn, 3), {}, {}, {}, &adapters};
  const Tensor x = matrix(kRows, kIn, 4), y = adapted_linear(x, view, {});
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_TRUE(same_bits(adapted_linear(x.narrow(0, row, 1), view, {}), y.narrow(0, row, 1))) << "row " << row;
    const Tensor sum = at::zeros({1, 60}, at::kBFloat16);
    add_adapted_linear_(sum, x.narrow(0, row, 1), view);
    EXPECT_TRUE(same_bits(sum, y.narrow(0, row, 1))) << "row " << row;
  }
}

// What an adapter adds is dropped or doubled: read off where the base is subtracted.
TEST(AdaptedLinear, DroppedOutputsAreZeroAndKeptOnesScaledUp) {
  const Layer layer(0.5);
  const Tensor base = linear(layer.x, layer.view.weight, layer.view.bias);
  const Tensor whole = adapted_linear(layer.x, layer.view, {}) - base, dropped = adapted_linear(layer.x, layer.view, 7) - base;
  const Tensor share = (dropped / whole).narrow(1, 2, 8);
  EXPECT_LT((share * (share - 2)).abs().max().item<double>(), 1e-3) << share;
  EXPECT_LT(share.narrow(1, 0, 3).eq(share.narrow(1, 5, 3)).to(at::kFloat).mean().item<double>(), 0.95);  // places draw apart
}

// 40,000 draws at 0.3: the share's deviation is 0.0023; the mean of kept / 0.7 deviates by 0.0033. Five of them are allowed.
TEST(AdaptedLinear, DropoutKeepsTheExpectation) {
  std::vector<AdapterView> adapters = {{at::ones({1, 1}), at::ones({200, 1}), {}, {}, 0, 200, 1, 0.3, 0}};
  const LinearView view{at::zeros({200, 1}), {}, {}, {}, &adapters};
  const Tensor y = adapted_linear(at::ones({200, 1}), view, 11);
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.3, 0.0115);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.0165);
}

TEST(AdaptedLinear, TheBackwardDropsWhatTheForwardDropped) {
  const Layer layer(0.4);
  const Tensor dx = input_gradient(layer, 7);
  add_gradients(layer, 7);
  // The layer is linear in x and in each of a and b, so a difference quotient is exact but for rounding.
  const auto loss = [&](const Tensor& x) { return (adapted_linear(x, layer.view, 7) * layer.dy).sum().item<double>(); };
  const Tensor direction = normals({kRows, kIn}, 30);
  const double slope = loss(layer.x + direction) - loss(layer.x);
  EXPECT_NEAR(slope, (dx * direction).sum().item<double>(), 1e-3);
  for (const AdapterView& adapter : layer.adapters)
    for (const auto& [matrix, gradient] : {std::pair(adapter.a, adapter.a_gradient), std::pair(adapter.b, adapter.b_gradient)}) {
      const Tensor way = normals(matrix.sizes(), 31);
      const double before = loss(layer.x);
      matrix.add_(way);
      const double change = loss(layer.x) - before;
      matrix.sub_(way);
      EXPECT_NEAR(change, (gradient * way).sum().item<double>(), 1e-3);
    }
}

}  // namespace
}  // namespace kedge
