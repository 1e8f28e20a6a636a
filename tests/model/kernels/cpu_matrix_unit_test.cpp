#include "kedge/model/kernels/cpu_matrix_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/product_numbers.h"

namespace kedge::cpu {
namespace {

class MatrixUnit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_matrix_unit()) GTEST_SKIP() << "this CPU has no matrix unit";
  }
};

// A product with all extra terms, and its output.
struct Case {
  int64_t rows, in, out;
  std::vector<uint16_t> x, weight, bias, beside, y;

  Case(int64_t num_rows, int64_t depth, int64_t num_out, std::vector<uint16_t> (*numbers)(int64_t count, uint64_t stream))
      : rows(num_rows),
        in(depth),
        out(num_out),
        x(numbers(rows * in, 1)),
        weight(numbers(out * in, 2)),
        bias(numbers(out, 3)),
        beside(numbers(rows * out, 4)),
        y(beside) {}

  // Rows from `first` on, with output `to`.
  [[nodiscard]] Product<uint16_t> product(int64_t first, int64_t count, std::vector<uint16_t>& to) const {
    auto some = forward_product(x.data() + first * in, weight.data(), to.data(), count, in, out);
    some.bias = bias.data(), some.beside = beside.data() + first * out;
    return some;
  }
  void multiply() { multiply_by_matrix_unit(product(0, rows, y), {0, rows}, {0, out}); }
  // One output in fp64, and the sum of its terms' sizes.
  [[nodiscard]] std::pair<double, double> exact(int64_t r, int64_t o) const {
    const auto at = [](const std::vector<uint16_t>& from, int64_t i) { return static_cast<double>(widened(from[static_cast<size_t>(i)])); };
    double sum = at(bias, o) + at(beside, r * out + o), size = std::abs(at(bias, o)) + std::abs(at(beside, r * out + o));
    for (int64_t i = 0; i < in; ++i) {
      const double term = at(x, r * in + i) * at(weight, o * in + i);
      sum += term, size += std::abs(term);
    }
    return {sum, size};
  }
  [[nodiscard]] std::string name() const { return std::to_string(rows) + " rows, " + std::to_string(in) + " to " + std::to_string(out); }
};

std::vector<uint16_t> random_halves(int64_t count, uint64_t stream) { return halves(normals(count, stream)); }
// Whole numbers from -8 to 8: their products and sums are exact in fp32, in any order.
std::vector<uint16_t> small_numbers(int64_t count, uint64_t stream) {
  std::vector<float> numbers = normals(count, stream);
  for (float& x : numbers) x = std::clamp(std::round(3 * x), -8.0F, 8.0F);
  return halves(numbers);
}

// Around the sizes of tiles, pairs of tiles and blocks of rows.
constexpr int64_t kSizes[][3] = {{1, 1, 1},    {1, 7, 5},    {2, 16, 16},   {3, 33, 65},   {4, 0, 3},
                                 {8, 31, 32},  {13, 17, 48}, {14, 64, 100}, {15, 128, 33}, {16, 32, 16},
                                 {17, 32, 17}, {29, 384, 9}, {33, 385, 40}, {70, 800, 70}, {300, 20, 17}};

TEST_F(MatrixUnit, ExactSumsAreExact) {
  for (const auto& [rows, in, out] : kSizes) {
    Case some(rows, in, out, small_numbers);
    some.multiply();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out; ++o)
        ASSERT_EQ(some.y[static_cast<size_t>(r * out + o)], rounded(static_cast<float>(some.exact(r, o).first))) << some.name();
  }
}

// Each of the depth's additions rounds by at most 2^-23 of the sum of sizes, whichever way the unit rounds; the result by 2^-9 of itself.
TEST_F(MatrixUnit, SumsAreWithinTheirRoundings) {
  for (const auto& [rows, in, out] : kSizes) {
    Case some(rows, in, out, random_halves);
    some.multiply();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out; ++o) {
        const auto [sum, size] = some.exact(r, o);
        ASSERT_NEAR(widened(some.y[static_cast<size_t>(r * out + o)]), sum,
                    std::abs(sum) * 0x1p-8 + size * static_cast<double>(in + 2) * 0x1p-23)
            << some.name();
      }
  }
}

TEST_F(MatrixUnit, ARowHasTheSameBitsAlone) {
  for (const auto& [rows, in, out] : kSizes) {
    Case some(rows, in, out, random_halves);
    some.multiply();
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<uint16_t> alone(static_cast<size_t>(out));
      multiply_by_matrix_unit(some.product(r, 1, alone), {0, 1}, {0, out});
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), some.y.begin() + r * out)) << some.name() << ", row " << r;
    }
  }
}

// Threads take parts of the output; what lies outside a part stays as it was.
TEST_F(MatrixUnit, APartOfTheOutputHasTheBitsOfTheWhole) {
  Case some(40, 50, 90, random_halves);
  some.multiply();
  for (const auto& [rows, columns] : std::vector<std::pair<Range, Range>>{{{0, 7}, {0, 90}}, {{3, 40}, {32, 64}}, {{5, 6}, {1, 2}}}) {
    std::vector<uint16_t> part(some.y.size(), 0x4242);
    multiply_by_matrix_unit(some.product(0, some.rows, part), rows, columns);
    for (int64_t r = 0; r < some.rows; ++r)
      for (int64_t o = 0; o < some.out; ++o) {
        const bool is_inside = r >= rows.begin && r < rows.end && o >= columns.begin && o < columns.end;
        const auto at = static_cast<size_t>(r * some.out + o);
        ASSERT_EQ(part[at], is_inside ? some.y[at] : 0x4242);
      }
  }
}

TEST_F(MatrixUnit, NanAndInfinityStay) {
  Case some(3, 40, 20, random_halves);
  some.x[5] = halves({std::numeric_limits<float>::quiet_NaN()})[0];
  some.x[static_cast<size_t>(2 * some.in + 7)] = halves({std::numeric_limits<float>::infinity()})[0];
  some.multiply();
  for (int64_t o = 0; o < some.out; ++o) {
    EXPECT_TRUE(std::isnan(widened(some.y[static_cast<size_t>(o)])));
    EXPECT_TRUE(std::isfinite(widened(some.y[static_cast<size_t>(some.out + o)])));
    EXPECT_TRUE(std::isinf(widened(some.y[static_cast<size_t>(2 * some.out + o)])));
  }
}

}  // namespace
}  // namespace kedge::cpu
