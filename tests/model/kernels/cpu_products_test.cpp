#include "kedge/model/kernels/cpu_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/support/product_numbers.h"

namespace kedge::cpu {
namespace {

struct Shape {
  int64_t rows, in, out;
};
// Around the sizes of tiles, panels and blocks of every unit.
const std::vector<Shape> kShapes = {{1, 1, 1},     {1, 7, 5},     {2, 16, 16},  {3, 33, 65},   {4, 0, 3},     {8, 31, 32},  {13, 17, 48},
                                    {14, 64, 100}, {15, 128, 33}, {29, 384, 9}, {30, 385, 40}, {70, 800, 70}, {400, 20, 17}};

std::string name_of(VectorUnit unit, const Shape& shape) {
  return "unit " + std::to_string(static_cast<int>(unit)) + ": " + std::to_string(shape.rows) + " rows, " + std::to_string(shape.in) +
         " to " + std::to_string(shape.out);
}

template <typename T>
void multiply_all(VectorUnit unit, const Product<T>& product) {
  multiply(unit, product, {0, product.num_rows}, {0, product.num_columns});
}

TEST(CpuProducts, EveryOutputIsOneFusedChain) {
  for (const VectorUnit unit : vector_units())
    for (const Shape& shape : kShapes) {
      const auto [rows, in, out] = shape;
      const std::vector<float> x = normals(rows * in, 1), weight = normals(out * in, 2), bias = normals(out, 3),
                               beside = normals(rows * out, 4);
      for (const bool with_terms : {false, true}) {
        std::vector<float> y(static_cast<size_t>(rows * out), 1e9F);
        Product<float> product = forward_product(x.data(), weight.data(), y.data(), rows, in, out);
        if (with_terms) product.bias = bias.data(), product.beside = beside.data();
        multiply_all(unit, product);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t o = 0; o < out; ++o) {
            float sum = 0;
            for (int64_t i = 0; i < in; ++i)
              sum = std::fma(x[static_cast<size_t>(r * in + i)], weight[static_cast<size_t>(o * in + i)], sum);
            if (with_terms) sum = sum + bias[static_cast<size_t>(o)] + beside[static_cast<size_t>(r * out + o)];
            ASSERT_EQ(std::bit_cast<uint32_t>(sum), std::bit_cast<uint32_t>(y[static_cast<size_t>(r * out + o)])) << name_of(unit, shape);
          }
      }
    }
}

TEST(CpuProducts, Bf16IsSummedInFp32AndRoundedOnce) {
  for (const VectorUnit unit : vector_units())
    for (const Shape& shape : kShapes) {
      const auto [rows, in, out] = shape;
      const std::vector<uint16_t> x = halves(normals(rows * in, 1)), weight = halves(normals(out * in, 2)), bias = halves(normals(out, 3));
      std::vector<uint16_t> y = halves(normals(rows * out, 4));
      const std::vector<uint16_t> beside = y;
      Product<uint16_t> product = forward_product(x.data(), weight.data(), y.data(), rows, in, out);
      product.bias = bias.data(), product.beside = y.data();
      multiply_all(unit, product);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t o = 0; o < out; ++o) {
          float sum = 0;
          for (int64_t i = 0; i < in; ++i)
            sum = std::fma(widened(x[static_cast<size_t>(r * in + i)]), widened(weight[static_cast<size_t>(o * in + i)]), sum);
          sum = sum + widened(bias[static_cast<size_t>(o)]) + widened(beside[static_cast<size_t>(r * out + o)]);
          ASSERT_EQ(rounded(sum), y[static_cast<size_t>(r * out + o)]) << name_of(unit, shape);
        }
    }
}

TEST(CpuProducts, AnInputsGradientIsAChainOverTheOutputs) {
  for (const VectorUnit unit : vector_units())
    for (const Shape& shape : kShapes) {
      const auto [rows, in, out] = shape;
      const std::vector<float> dy = normals(rows * out, 1), weight = normals(out * in, 2);
      std::vector<float> dx(static_cast<size_t>(rows * in), 1e9F);
      multiply_all(unit, input_gradient(dy.data(), weight.data(), dx.data(), rows, in, out));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < in; ++i) {
          float sum = 0;
          for (int64_t o = 0; o < out; ++o)
            sum = std::fma(dy[static_cast<size_t>(r * out + o)], weight[static_cast<size_t>(o * in + i)], sum);
          ASSERT_EQ(std::bit_cast<uint32_t>(sum), std::bit_cast<uint32_t>(dx[static_cast<size_t>(r * in + i)])) << name_of(unit, shape);
        }
    }
}

TEST(CpuProducts, AWeightsGradientIsAChainOverTheRowsAddedToWhatIsThere) {
  for (const VectorUnit unit : vector_units())
    for (const Shape& shape : kShapes) {
      const auto [rows, in, out] = shape;
      const std::vector<float> dy = normals(rows * out, 1), x = normals(rows * in, 2), before = normals(out * in, 3);
      std::vector<float> gradient = before;
      multiply_all(unit, weight_gradient(dy.data(), x.data(), gradient.data(), rows, in, out));
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < in; ++i) {
          float sum = 0;
          for (int64_t r = 0; r < rows; ++r) sum = std::fma(dy[static_cast<size_t>(r * out + o)], x[static_cast<size_t>(r * in + i)], sum);
          sum = sum + before[static_cast<size_t>(o * in + i)];
          ASSERT_EQ(std::bit_cast<uint32_t>(sum), std::bit_cast<uint32_t>(gradient[static_cast<size_t>(o * in + i)]))
              << name_of(unit, shape);
        }
    }
}

// Threads take parts of the output; what lies outside a part stays as it was.
TEST(CpuProducts, APartOfTheOutputHasTheBitsOfTheWhole) {
  constexpr int64_t kRows = 40, kIn = 50, kOut = 90;
  const std::vector<float> x = normals(kRows * kIn, 1), weight = normals(kOut * kIn, 2);
  for (const VectorUnit unit : vector_units()) {
    std::vector<float> whole(kRows * kOut);
    multiply_all(unit, forward_product(x.data(), weight.data(), whole.data(), kRows, kIn, kOut));
    for (const auto& [rows, columns] : std::vector<std::pair<Range, Range>>{{{0, 7}, {0, 90}}, {{3, 40}, {32, 64}}, {{5, 6}, {1, 2}}}) {
      std::vector<float> part(kRows * kOut, 1e9F);
      multiply(unit, forward_product(x.data(), weight.data(), part.data(), kRows, kIn, kOut), rows, columns);
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t o = 0; o < kOut; ++o) {
          const bool is_inside = r >= rows.begin && r < rows.end && o >= columns.begin && o < columns.end;
          ASSERT_EQ(part[static_cast<size_t>(r * kOut + o)], is_inside ? whole[static_cast<size_t>(r * kOut + o)] : 1e9F);
        }
    }
  }
}

TEST(CpuProducts, NanAndInfinityStay) {
  for (const VectorUnit unit : vector_units()) {
    const std::vector<uint16_t> x = {0x7FC1, 0x3F80, 0x7F80}, weight = {0x3F80};
    std::vector<uint16_t> y(3);
    multiply_all(unit, forward_product(x.data(), weight.data(), y.data(), 3, 1, 1));
    EXPECT_EQ(y, (std::vector<uint16_t>{0x7FC0, 0x3F80, 0x7F80}));
  }
}

}  // namespace
}  // namespace kedge::cpu
