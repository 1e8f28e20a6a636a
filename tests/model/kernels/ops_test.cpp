#include "kedge/model/kernels/ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/ops/gelu.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

#include "tests/support/plain_network.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::ids_below;
using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

// Results in bf16 are rounded once from fp32: half a unit in the last of 8 bits, 2^-9 of a number's own size.
constexpr double kBf16 = 0x1p-8;
constexpr double kFp32 = 1e-5;
double limit_of(at::ScalarType dtype) { return dtype == at::kFloat ? kFp32 : kBf16; }

struct NormCase {
  NormKind kind;
  bool bias, beside;
  int64_t size;
  at::ScalarType dtype;
};

std::vector<NormCase> norm_cases() {
  std::vector<NormCase> cases;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t size : {3, 16, 37, 64, 130})
      for (const bool beside : {false, true}) {
        cases.push_back({NormKind::rms, false, beside, size, dtype});
        cases.push_back({NormKind::layer, true, beside, size, dtype});
      }
  return cases;
}

TEST(Ops, NormsAndTheirGradientsEqualThePlainFormulas) {
  for (const NormCase& one : norm_cases()) {
    SCOPED_TRACE(kedge::str(one.kind == NormKind::rms ? "rms " : "layer ", one.size, " ", c10::toString(one.dtype)));
    constexpr int64_t kRows = 300;  // more than the block of rows weight gradients are summed in
    const Tensor x = normals({kRows, one.size}, 1, 2, one.dtype) + 0.5, dout = normals({kRows, one.size}, 2, 1, one.dtype);
    const Tensor weight = normals({one.size}, 3, 1, one.dtype), bias = one.bias ? normals({one.size}, 4, 1, one.dtype) : Tensor();
    const Tensor beside = one.beside ? normals({kRows, one.size}, 5, 1, one.dtype) : Tensor();
    NormWeights weights{weight, bias, at::ones({one.size}), one.bias ? at::ones({one.size}) : Tensor(), one.kind, 1e-5};
    const Normed found = norm(x, weights);
    const Tensor dx = norm_backward(dout, x, found, weights, beside);

    const Tensor x_leaf = leaf(x), weight_leaf = leaf(weight), bias_leaf = one.bias ? leaf(bias) : Tensor();
    const Tensor wanted = testing::plain_norm(x_leaf, weight_leaf, bias_leaf, one.kind, 1e-5);
    backward((wanted * dout.to(at::kDouble)).sum());
    const Tensor wanted_dx = one.beside ? x_leaf.grad() + beside.to(at::kDouble) : x_leaf.grad();
    EXPECT_LT(relative_error(found.out, wanted), limit_of(one.dtype));
    EXPECT_LT(relative_error(dx, wanted_dx), limit_of(one.dtype));
    // Weights' gradients are fp32 whatever the inputs are, and are added to what is there.
    EXPECT_LT(relative_error(weights.weight_gradient - 1, weight_leaf.grad()), kFp32);
    if (one.bias) {
      EXPECT_LT(relative_error(weights.bias_gradient - 1, bias_leaf.grad()), kFp32);
    }
    EXPECT_TRUE(same_bits(norm_again(x, found, weights), found.out));
  }
}

TEST(Ops, ANormNobodyTrainsGivesTheSameGradientOfItsInput) {
  const Tensor x = normals({7, 20}, 1), dout = normals({7, 20}, 2), weight = normals({20}, 3), bias = normals({20}, 4);
  const NormWeights frozen{weight, bias, {}, {}, NormKind::layer, 1e-5};
  const NormWeights trained{weight, bias, at::zeros({20}), at::zeros({20}), NormKind::layer, 1e-5};
  const Normed saved = norm(x, frozen);
  EXPECT_TRUE(same_bits(norm_backward(dout, x, saved, frozen, {}), norm_backward(dout, x, saved, trained, {})));
}

Tensor plain_activation(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::silu:
      return x * x.sigmoid();
    case Activation::gelu:
      return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf());
    case Activation::gelu_tanh:
      return x * 0.5 * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)).tanh());
    case Activation::relu:
      return x.clamp_min(0);
    case Activation::relu2:
      return x.clamp_min(0).square();
  }
  return {};
}

TEST(Ops, GatesAndTheirGradientsEqualThePlainFormulas) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::relu2})
      for (const bool gated : {true, false})
        for (const int64_t size : {1, 16, 37}) {
          SCOPED_TRACE(kedge::str(name_of(activation), gated ? " gated " : " ", size, " ", c10::toString(dtype)));
          const Tensor in = normals({9, gated ? 2 * size : size}, 1, 3, dtype), dout = normals({9, size}, 2, 1, dtype);
          const GateKind kind{activation, gated};
          const Tensor in_leaf = leaf(in);
          const Tensor activated = plain_activation(in_leaf.narrow(1, 0, size), activation);
          const Tensor wanted = gated ? activated * in_leaf.narrow(1, size, size) : activated;
          backward((wanted * dout.to(at::kDouble)).sum());
          // In bf16 the compositions of ATen operators round after each of up to three of them.
          const double limit = dtype == at::kFloat ? kFp32 : 3 * kBf16;
          EXPECT_LT(relative_error(gate(in, kind), wanted), limit);
          const GateGradient found = gate_backward(dout, in, kind);
          EXPECT_LT(relative_error(found.gate_up, in_leaf.grad()), limit);
          EXPECT_TRUE(same_bits(found.out, gate(in, kind)));
        }
}

TEST(Ops, GatesOfLargeNumbersStayFinite) {
  const Tensor in = at::tensor({1e30, -1e30, 88.0, -88.0, 1.0, 1.0, 1.0, 1.0}).to(at::kFloat).view({1, 8});
  const Tensor out = gate(in, {}).view({-1});
  EXPECT_EQ(out[0].item<float>(), 1e30F);
  EXPECT_NEAR(out[1].item<float>(), 0, 1e-6);
  EXPECT_NEAR(out[2].item<float>(), 88, 1e-4);
  EXPECT_NEAR(out[3].item<float>(), 0, 1e-30);
}

Rotation rotation_for(int64_t rows, int64_t num_heads, int64_t head_dim, int64_t dim) {
  const Tensor angles = normals({rows, dim / 2}, 11, 3);
  return {angles.cos(), angles.sin(), num_heads, head_dim, dim};
}

TEST(Ops, RotationTurnsTheFirstChannelsOfTheFirstHeads) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t dim : {2, 6, 10}) {
      const Rotation rotation = rotation_for(5, 3, 10, dim);
      const Tensor x = normals({5, 47}, 1, 1, dtype), turned = x.clone();
      rotate_(turned, rotation, false);
      EXPECT_LT(relative_error(turned, testing::plain_rotation(x.to(at::kDouble), rotation)), limit_of(dtype));
      EXPECT_TRUE(same_bits(turned.narrow(1, 30, 17), x.narrow(1, 30, 17)));
      EXPECT_TRUE(same_bits(turned.narrow(1, dim, 10 - dim), x.narrow(1, dim, 10 - dim)));
      rotate_(turned, rotation, true);
      EXPECT_LT(relative_error(turned, x), dtype == at::kFloat ? 1e-6 : 2 * kBf16);  // rounded twice
    }
}

TEST(Ops, BackwardsIsTheGradientOfTheRotation) {
  const Rotation rotation = rotation_for(4, 2, 8, 8);
  const Tensor x_leaf = leaf(normals({4, 20}, 1)), dout = normals({4, 20}, 2);
  backward((testing::plain_rotation(x_leaf, rotation) * dout.to(at::kDouble)).sum());
  const Tensor dx = dout.clone();
  rotate_(dx, rotation, true);
  EXPECT_LT(relative_error(dx, x_leaf.grad()), 1e-6);
}

TEST(Ops, RowsAreAddedWhereTheirIdsSay) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor ids = testing::longs({2, 0, 2, 2}), rows = normals({4, 70}, 1, 1, dtype), table = at::ones({3, 70});
    add_rows_(table, ids, rows);
    const Tensor wide = rows.to(at::kFloat);
    EXPECT_LT(relative_error(table[0], 1 + wide[1]), 1e-6);
    EXPECT_TRUE(same_bits(table[1], at::ones({70})));
    EXPECT_LT(relative_error(table[2], 1 + wide[0] + wide[2] + wide[3]), 1e-6);
  }
}

TEST(Ops, LogitStatsAndTheirGradientEqualThePlainFormulas) {
  for (const int64_t vocab : {2, 5, 37, 1000})
    for (const bool entropy : {false, true}) {
      SCOPED_TRACE(kedge::str(vocab, " ", entropy));
      const Tensor logits = normals({11, vocab}, 1, 3), targets = ids_below(vocab, 11, 2);
      const Tensor dlogprob = normals({11}, 3), dentropy = entropy ? normals({11}, 4) : Tensor();
      const LogitStats stats = logit_stats(logits, targets, entropy);
      const Tensor logits_leaf = leaf(logits);
      const Tensor logp = at::log_softmax(logits_leaf, -1);
      const Tensor wanted = logp.gather(1, targets.unsqueeze(1)).squeeze(1), wanted_entropy = -(logp.exp() * logp).sum(-1);
      Tensor loss = (wanted * dlogprob.to(at::kDouble)).sum();
      if (entropy) loss = loss + (wanted_entropy * dentropy.to(at::kDouble)).sum();
      backward(loss);
      EXPECT_LT(relative_error(stats.logprob, wanted), kFp32);
      EXPECT_LT(relative_error(stats.log_sum, logits.to(at::kDouble).exp().sum(-1).log()), kFp32);
      EXPECT_EQ(stats.entropy.defined(), entropy);
      if (entropy) {
        EXPECT_LT(relative_error(stats.entropy, wanted_entropy), kFp32);
      }
      EXPECT_LT(relative_error(logit_gradient(logits.clone(), targets, stats, dlogprob, dentropy, at::kFloat), logits_leaf.grad()), kFp32);
    }
}

TEST(Ops, LogitStatsOfBf16LogitsAreThoseOfTheirValues) {
  const Tensor logits = normals({6, 37}, 1, 3, at::kBFloat16), targets = ids_below(37, 6, 2);
  const LogitStats narrow = logit_stats(logits, targets, true), wide = logit_stats(logits.to(at::kFloat), targets, true);
  EXPECT_TRUE(same_bits(narrow.logprob, wide.logprob));
  EXPECT_TRUE(same_bits(narrow.entropy, wide.entropy));
  const Tensor d = normals({6}, 3);
  const Tensor found = logit_gradient(logits.clone(), targets, narrow, d, d, at::kBFloat16);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  // The target's own number is rounded once more.
  EXPECT_LT(relative_error(found, logit_gradient(logits.to(at::kFloat), targets, wide, d, d, at::kFloat)), 2 * kBf16);
}

TEST(Ops, OnTheCpuALogitGradientHasTheTypeOfTheLogits) {
  const Tensor logits = normals({6, 37}, 1, 3), targets = ids_below(37, 6, 2), d = normals({6}, 3);
  const LogitStats stats = logit_stats(logits, targets, true);
  EXPECT_THROW(static_cast<void>(logit_gradient(logits, targets, stats, d, d, at::kBFloat16)), Bug);
}

TEST(Ops, HugeLogitsStayFiniteAndExact) {
  const Tensor logits = at::tensor({1e4, -1e4, 0.0, 1e4, 0.0, 0.0}).to(at::kFloat).view({2, 3});
  const Tensor targets = testing::longs({1, 0});
  const LogitStats stats = logit_stats(logits, targets, true);
  EXPECT_EQ(stats.logprob[0].item<float>(), -2e4F);
  EXPECT_EQ(stats.logprob[1].item<float>(), 0);
  EXPECT_EQ(stats.entropy[0].item<float>(), 0);
  const Tensor gradient = logit_gradient(logits.clone(), targets, stats, at::ones({2}), at::ones({2}), at::kFloat);
  EXPECT_TRUE(at::equal(gradient, at::tensor({-1.0, 1.0, 0.0, 0.0, 0.0, 0.0}).to(at::kFloat).view({2, 3}))) << gradient;
}

TEST(Ops, AUniformRowHasTheEntropyOfItsSize) {
  const LogitStats stats = logit_stats(at::full({1, 4}, 7.0F), testing::longs({2}), true);
  EXPECT_NEAR(stats.entropy.item<float>(), 1.386294361, 1e-6);
  EXPECT_NEAR(stats.logprob.item<float>(), -1.386294361, 1e-6);
}

TEST(Ops, LinearAddsBiasAndWhatStandsBeside) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor x = normals({5, 37}, 1, 1, dtype), weight = normals({11, 37}, 2, 1, dtype), bias = normals({11}, 3, 1, dtype);
    const Tensor beside = normals({5, 11}, 4, 1, dtype);
    const Tensor product = at::mm(x.to(at::kDouble), weight.to(at::kDouble).t());
    const double limit = dtype == at::kFloat ? 1e-6 : 2 * kBf16;  // the bias is added after a rounding
    EXPECT_LT(relative_error(linear(x, weight, Tensor()), product), limit);
    EXPECT_LT(relative_error(linear(x, weight, bias), product + bias.to(at::kDouble)), limit);
    EXPECT_LT(relative_error(linear(x, weight, Tensor(), beside), product + beside.to(at::kDouble)), limit);
    EXPECT_LT(relative_error(linear(x, weight, bias, beside), product + (bias + beside).to(at::kDouble)), limit);
  }
}

TEST(Ops, GradientsOfLinearWeightsAreAddedInFp32) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor x = normals({50, 37}, 1, 1, dtype), dy = normals({50, 11}, 2, 1, dtype);
    const Tensor gradient = at::ones({11, 37}), bias_gradient = at::ones({11});
    add_weight_gradient(gradient, dy, x);
    add_weight_gradient(gradient, dy, x);
    add_bias_gradient(bias_gradient, dy);
    // On the CPU a bf16 product is rounded before it is added.
    EXPECT_LT(relative_error(gradient, 1 + 2 * at::mm(dy.to(at::kDouble).t(), x.to(at::kDouble))), limit_of(dtype));
    EXPECT_LT(relative_error(bias_gradient, 1 + dy.to(at::kDouble).sum(0)), kFp32);
    add_weight_gradient({}, dy, x);
    add_bias_gradient({}, dy);
  }
}

}  // namespace
}  // namespace kedge
