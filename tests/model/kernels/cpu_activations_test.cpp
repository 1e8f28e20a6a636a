#include "kedge/model/kernels/cpu_activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::same_bits;

constexpr Activation kAll[] = {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::relu2};

// In double precision, by the formulas of the papers.
double wanted(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu2:
      return std::max(x, 0.0) * std::max(x, 0.0);
  }
  return 0;
}

Tensor activated(const Tensor& x, Activation activation) {
  Tensor out = at::empty_like(x);
  cpu::activate(x, activation, out);
  return out;
}
Tensor slopes(const Tensor& dout, const Tensor& x, Activation activation) {
  Tensor dx = at::empty_like(x);
  cpu::activate_backward(dout, x, activation, dx);
  return dx;
}

// Sums of two numbers around 1 may cancel to an error of a unit in the last place of 1; what multiplies them is at most |x|.
TEST(CpuActivations, AreTheFormulas) {
  const Tensor x = normals({5003}, 1, 4);
  for (const Activation activation : kAll) {
    const Tensor found = activated(x, activation), dx = slopes(at::full({5003}, 2.0, at::kFloat), x, activation);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const auto at = x[i].item<double>(), value = wanted(activation, at), step = 1e-5;
      const double slope = (wanted(activation, at + step) - wanted(activation, at - step)) / (2 * step);
      ASSERT_NEAR(found[i].item<double>(), value, 4e-7 * (std::abs(at) + std::abs(value))) << at;
      if (std::abs(at) < step) continue;  // where a slope may jump
      ASSERT_NEAR(dx[i].item<double>(), 2 * slope, 2e-6 * (1 + std::abs(at))) << at;
    }
  }
}

TEST(CpuActivations, RoundBf16Once) {
  const Tensor x = normals({1003}, 1, 3, at::kBFloat16), dout = normals({1003}, 2, 1, at::kBFloat16);
  for (const Activation activation : kAll) {
    EXPECT_TRUE(same_bits(activated(x, activation), activated(x.to(at::kFloat), activation).to(at::kBFloat16)));
    EXPECT_TRUE(same_bits(slopes(dout, x, activation), slopes(dout.to(at::kFloat), x.to(at::kFloat), activation).to(at::kBFloat16)));
  }
}

// The share of a thread may end anywhere.
TEST(CpuActivations, ANumbersBitsDoNotDependOnItsPlaceOrTheThreads) {
  const int before = at::get_num_threads();
  const Tensor x = normals({54047}, 1, 3);
  for (const Activation activation : kAll) {
    at::set_num_threads(1);
    const Tensor single = activated(x, activation), slope = slopes(x, x, activation);
    for (const int64_t from : {1, 7, 33}) {
      const Tensor part = x.narrow(0, from, 1001).contiguous();
      EXPECT_TRUE(same_bits(activated(part, activation), single.narrow(0, from, 1001)));
      EXPECT_TRUE(same_bits(slopes(part, part, activation), slope.narrow(0, from, 1001)));
    }
    for (const int count : {2, 3}) {
      at::set_num_threads(count);
      EXPECT_TRUE(same_bits(activated(x, activation), single));
    }
  }
  at::set_num_threads(before);
}

TEST(CpuActivations, KnowTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = at::tensor({-1e30F, 1e30F, 0.0F, std::numeric_limits<float>::quiet_NaN(), infinity});
  for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
    const Tensor found = activated(x, activation);
    EXPECT_NEAR(found[0].item<double>(), 0, 1e-6);
    EXPECT_EQ(found[1].item<float>(), 1e30F);
    EXPECT_EQ(found[2].item<float>(), 0);
    EXPECT_TRUE(std::isnan(found[3].item<double>()));
    EXPECT_EQ(found[4].item<float>(), infinity);
  }
}

}  // namespace
}  // namespace kedge
