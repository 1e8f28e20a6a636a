#include "kedge/model/kernels/cpu_linear.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_shared_product.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::same_bits;

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16};

Tensor product(const Tensor& x, const Tensor& weight, const cpu::LinearTerms& terms = {}) {
  Tensor out = at::full({x.size(0), weight.size(0)}, 1e9, x.options());
  cpu::linear(x, weight, out, terms);
  return out;
}

Tensor doubles(const Tensor& x) { return x.to(at::kDouble); }

// A sum of n products in fp32 has at most n roundings on its way. Each is off by half a unit in the last of 24 bits, or by a whole one in
// the instructions for bf16, which round to odd: 2^-23 of a partial sum, and none of those exceeds the sum of the products' sizes. bf16
// has 8 bits, so the result is rounded once more by 2^-8 of itself.
void expect_close(const Tensor& found, const Tensor& x, const Tensor& weight, const cpu::LinearTerms& terms = {}) {
  Tensor wanted = at::mm(doubles(x), doubles(weight).t()), sizes = at::mm(doubles(x).abs(), doubles(weight).abs().t());
  for (const Tensor& term : {terms.bias, terms.beside})
    if (term.defined()) wanted = wanted + doubles(term), sizes = sizes + doubles(term).abs();
  Tensor limit = sizes * (static_cast<double>(x.size(1) + 2) * 0x1p-23);
  if (x.scalar_type() == at::kBFloat16) limit = limit + (wanted.abs() + limit) * 0x1p-8;
  EXPECT_TRUE((doubles(found) - wanted).abs().le(limit).all().item<bool>())
      << x.sizes() << " by " << weight.sizes() << " " << c10::toString(x.scalar_type());
}

TEST(CpuLinear, EqualsTheProductInDoublePrecision) {
  for (const at::ScalarType dtype : kTypes)
    for (const int64_t in : {1, 3, 4, 7, 8, 9, 31, 64, 129, 576})
      for (const int64_t num_out : {1, 2, 3, 5, 8, 23, 24, 25, 49, 130}) {
        const Tensor weight = normals({num_out, in}, 1, 1, dtype);
        for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 15, 64, 65, 130}) {
          const Tensor x = normals({rows, in}, 2, 1, dtype);
          expect_close(product(x, weight), x, weight);
        }
      }
}

// All are added in fp32 and rounded once.
TEST(CpuLinear, AddsABiasAndWhatStandsBeside) {
  for (const at::ScalarType dtype : kTypes)
    for (const int64_t rows : {1, 2, 6, 40})
      for (const int64_t num_out : {37, 64}) {
        const Tensor x = normals({rows, 33}, 1, 1, dtype), weight = normals({num_out, 33}, 2, 1, dtype);
        const Tensor bias = normals({num_out}, 3, 5, dtype), beside = normals({rows, num_out}, 4, 5, dtype);
        for (const cpu::LinearTerms& terms : {cpu::LinearTerms{bias, {}}, cpu::LinearTerms{{}, beside}, cpu::LinearTerms{bias, beside}})
          expect_close(product(x, weight, terms), x, weight, terms);
        Tensor sum = beside.clone();
        cpu::linear(x, weight, sum, {bias, sum});
        EXPECT_TRUE(same_bits(sum, product(x, weight, {bias, beside})));
      }
}

// What another row holds does not matter either, not even NaN.
TEST(CpuLinear, ARowsBitsDoNotDependOnTheOthers) {
  for (const at::ScalarType dtype : kTypes)
    for (const auto& [in, num_out] : std::vector<std::pair<int64_t, int64_t>>{{70, 37}, {64, 64}}) {
      const Tensor x = normals({66, in}, 1, 1, dtype), weight = normals({num_out, in}, 2, 1, dtype);
      x.narrow(0, 65, 1).fill_(std::numeric_limits<float>::quiet_NaN());
      std::vector<Tensor> rows;
      for (int64_t row = 0; row < 65; ++row) rows.push_back(product(x.narrow(0, row, 1), weight));
      const Tensor alone = at::cat(rows);
      for (int64_t count = 1; count <= 65; ++count) {
        EXPECT_TRUE(same_bits(product(x.narrow(0, 0, count), weight), alone.narrow(0, 0, count))) << count << " rows from the first on";
        EXPECT_TRUE(same_bits(product(x.narrow(0, 65 - count, count + 1), weight).narrow(0, 0, count), alone.narrow(0, 65 - count, count)))
            << count << " rows up to the last";
      }
    }
}

TEST(CpuLinear, NeitherThreadsNorTheOtherWeightsChangeABit) {
  const int before = at::get_num_threads();
  for (const at::ScalarType dtype : kTypes)
    for (const int64_t rows : {1, 3, 8, 70}) {
      const Tensor x = normals({rows, 300}, 1, 1, dtype), weight = normals({1000, 300}, 2, 1, dtype);
      at::set_num_threads(1);
      const Tensor single = product(x, weight);
      EXPECT_TRUE(same_bits(product(x, weight.narrow(0, 5, 50)), single.narrow(1, 5, 50)));
      for (const int count : {2, 5}) {
        at::set_num_threads(count);
        EXPECT_TRUE(same_bits(product(x, weight), single)) << count << " threads, " << rows << " rows";
      }
    }
  at::set_num_threads(before);
}

// Both may use the CPU's matrix unit, each in its own way.
TEST(CpuLinear, ProductsOfTheLibraryInBetweenChangeNothing) {
  const Tensor x = normals({70, 200}, 1, 1, at::kBFloat16), weight = normals({90, 200}, 2, 1, at::kBFloat16);
  const Tensor theirs = at::mm(x, weight.t()), ours = product(x, weight);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(same_bits(at::mm(x, weight.t()), theirs));
    EXPECT_TRUE(same_bits(product(x, weight), ours));
  }
}

TEST(CpuLinear, ProductsOfTheBackwardEqualThoseInDoublePrecision) {
  for (const auto& [rows, in, num_out] : std::vector<std::array<int64_t, 3>>{{1, 3, 5}, {9, 64, 33}, {300, 70, 129}}) {
    const Tensor dy = normals({rows, num_out}, 1), weight = normals({num_out, in}, 2), x = normals({rows, in}, 3);
    const Tensor beside = normals({rows, in}, 4), dx = at::full({rows, in}, 1e9), gradient = normals({num_out, in}, 5);
    const Tensor before = gradient.clone();
    cpu::multiply(dy, weight, dx);
    expect_close(dx, dy, weight.t().contiguous());
    cpu::multiply(dy, weight, dx, beside);
    expect_close(dx, dy, weight.t().contiguous(), {{}, beside});
    cpu::add_weight_gradient(gradient, dy, x);
    expect_close(gradient, dy.t(), x.t(), {{}, before});
  }
}

TEST(CpuLinear, ThreadsDoNotChangeABitOfTheBackward) {
  const int before = at::get_num_threads();
  const Tensor dy = normals({600, 300}, 1), weight = normals({300, 200}, 2), x = normals({600, 200}, 3);
  std::vector<Tensor> dxs, gradients;
  for (const int count : {1, 2, 5, 16}) {
    at::set_num_threads(count);
    dxs.push_back(at::zeros({600, 200}, at::kFloat)), gradients.push_back(at::zeros({300, 200}, at::kFloat));
    cpu::multiply(dy, weight, dxs.back());
    cpu::add_weight_gradient(gradients.back(), dy, x);
    EXPECT_TRUE(same_bits(dxs.back(), dxs[0]) && same_bits(gradients.back(), gradients[0])) << count << " threads";
  }
  at::set_num_threads(before);
}

TEST(CpuLinear, PartsForThreadsAreAsSquareAsTheyCanBe) {
  const auto parts = [](int64_t rows, int64_t columns, int64_t threads) {
    const cpu::Parts found = cpu::share_out(rows, columns, threads);
    return std::pair(static_cast<int>(found.rows), static_cast<int>(found.columns));
  };
  EXPECT_EQ(parts(4096, 1024, 2), std::pair(2, 1));
  EXPECT_EQ(parts(64, 1024, 2), std::pair(1, 2));
  EXPECT_EQ(parts(512, 512, 16), std::pair(4, 4));
  EXPECT_EQ(parts(64, 128, 16), std::pair(4, 4));  // no part is narrower than a panel, or has few rows
  EXPECT_EQ(parts(4096, 40, 3), std::pair(3, 1));  // all threads have work, though two panels would be enough for two
  EXPECT_EQ(parts(1, 20, 8), std::pair(1, 1));
}

TEST(CpuLinear, SuitsOnlyTensorsItCanRead) {
  EXPECT_TRUE(cpu::linear_suits(normals({4, 8}, 1), normals({6, 8}, 2)));
  for (const at::ScalarType dtype : kTypes) {
    const Tensor x = normals({4, 8}, 1, 1, dtype), weight = normals({6, 8}, 2, 1, dtype);
    EXPECT_FALSE(cpu::linear_suits(normals({8, 4}, 1, 1, dtype).t(), weight));
    EXPECT_FALSE(cpu::linear_suits(x, normals({8, 6}, 2, 1, dtype).t()));
    EXPECT_FALSE(cpu::linear_suits(x, weight.to(at::kDouble)));
    EXPECT_FALSE(cpu::linear_suits(x.to(at::kDouble), weight.to(at::kDouble)));
  }
}

}  // namespace
}  // namespace kedge
