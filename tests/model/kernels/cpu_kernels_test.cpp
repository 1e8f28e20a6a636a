#include "kedge/model/kernels/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_rows.h"

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::ids_below;
using testing::normals;
using testing::same_bits;

TEST(CpuRows, TheExponentialIsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (double x = -87.29; x <= 88.0; x += 0.000731) {
    const double wanted = std::exp(static_cast<double>(static_cast<float>(x)));
    const auto rounded = static_cast<float>(wanted);
    const double unit = static_cast<double>(std::nextafter(rounded, INFINITY)) - static_cast<double>(rounded);
    worst = std::max(worst, std::abs(static_cast<double>(cpu::exp_of(static_cast<float>(x))) - wanted) / unit);
  }
  EXPECT_LT(worst, 2);
}

TEST(CpuRows, TheExponentialAtItsEnds) {
  EXPECT_EQ(cpu::exp_of(0), 1);
  EXPECT_EQ(cpu::exp_of(-0.0F), 1);
  EXPECT_EQ(cpu::exp_of(-88), 0);
  EXPECT_EQ(cpu::exp_of(-1e30F), 0);
  EXPECT_EQ(cpu::exp_of(-INFINITY), 0);
  EXPECT_EQ(cpu::exp_of(89), cpu::exp_of(88));
  EXPECT_EQ(cpu::exp_of(INFINITY), cpu::exp_of(88));
  EXPECT_TRUE(std::isfinite(cpu::exp_of(88)));
}

TEST(CpuRows, Bf16IsRoundedAsTorchRoundsIt) {
  std::vector<float> values = {0.0F, -0.0F, 1.0F, 1.00390625F, 1.01171875F, INFINITY, -INFINITY, std::numeric_limits<float>::max(), 1e-42F};
  const Random random(3, 4);
  for (uint64_t i = 0; i < 20000; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.bits(i))));
  for (const float value : values) {
    at::BFloat16 found;
    cpu::store(found, value);
    const at::BFloat16 wanted(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(cpu::widen(found)));
    } else {
      EXPECT_EQ(found.x, wanted.x) << value;
      EXPECT_EQ(cpu::widen(found), static_cast<float>(wanted));
    }
  }
}

TEST(CpuRows, SumsAndMaximaTakeEveryElementOnce) {
  for (const int64_t n : {0, 1, 15, 16, 17, 37, 160}) {
    EXPECT_EQ(cpu::sum_of(n, [](int64_t i) { return static_cast<float>(i); }), static_cast<float>(n * (n - 1) / 2)) << n;
    for (int64_t place = 0; place < n; ++place)
      EXPECT_EQ(cpu::max_of(n, [&](int64_t i) { return i == place ? -1.0F : -2.0F; }), -1) << n << " " << place;
  }
  EXPECT_EQ(cpu::max_of(0, [](int64_t) { return 0.0F; }), -INFINITY);
}

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Everything the kernels give for one input, to be compared bit by bit.
std::vector<Tensor> all_results(at::ScalarType dtype, int64_t rows, int64_t size) {
  const auto cut = [&](Tensor x) { return x.narrow(0, 0, rows).contiguous(); };
  const Tensor x = cut(normals({2000, size}, 1, 1, dtype)), d = cut(normals({2000, size}, 2, 1, dtype));
  const NormWeights weights{
      normals({size}, 3, 1, dtype), normals({size}, 4, 1, dtype), at::zeros({size}), at::zeros({size}), NormKind::layer, 1e-5};
  const Normed normed = norm(x, weights);
  const Tensor dx = norm_backward(d, x, normed, weights, d);
  const Tensor gate_up = cut(normals({2000, 2 * size}, 5, 1, dtype));
  const GateGradient gradient = gate_backward(d, gate_up, {});
  const Tensor turned = x.clone(), angles = cut(normals({2000, size / 2}, 6));
  rotate_(turned, {angles.cos(), angles.sin(), 1, size, size / 2 * 2}, false);
  const Tensor table = at::zeros({50, size}), ids = cut(ids_below(50, 2000, 7));
  add_rows_(table, ids, x);
  const Tensor targets = cut(ids_below(size, 2000, 8));
  const LogitStats stats = logit_stats(x, targets, true);
  const Tensor dlogits = logit_gradient(x.clone(), targets, stats, stats.logprob, stats.entropy, dtype);
  return {weights.weight_gradient, weights.bias_gradient, table,  normed.out, dx, gate(gate_up, {}), gradient.out, gradient.gate_up, turned,
          stats.logprob,           stats.entropy,         dlogits};
}
constexpr size_t kSums = 3;  // the first results are sums over all rows

TEST(CpuKernels, ATargetOutsideTheLogitsIsNeverRead) {
  const auto error = [](int64_t target) {
    return error_of<Bug>([&] { return logit_stats(at::zeros({2, 3}), at::tensor({int64_t{2}, target}), false).logprob; });
  };
  EXPECT_EQ(error(3), "a target outside the 3 logits");
  EXPECT_EQ(error(-1), "a target outside the 3 logits");
}

TEST(CpuKernels, TheNumberOfThreadsChangesNoBit) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t size : {37, 64}) {
      const Threads one(1);
      const auto single = all_results(dtype, 2000, size);
      for (const int count : {2, 5}) {
        const Threads several(count);
        const auto many = all_results(dtype, 2000, size);
        for (size_t i = 0; i < single.size(); ++i) EXPECT_TRUE(same_bits(single[i], many[i])) << i << " with " << count << " threads";
      }
    }
}

TEST(CpuKernels, ARowsBitsDoNotDependOnTheRowsBeside) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t size : {5, 37, 64}) {
      const auto all = all_results(dtype, 2000, size);
      for (const int64_t rows : {1, 3, 300}) {
        const auto few = all_results(dtype, rows, size);
        for (size_t i = kSums; i < all.size(); ++i) EXPECT_TRUE(same_bits(few[i], all[i].narrow(0, 0, rows))) << i << " of " << rows;
      }
    }
}

TEST(CpuKernels, OtherNumberTypesAreABug) {
  const Tensor x = normals({2, 4}, 1, 1, at::kDouble);
  Tensor out = at::empty({2, 2}, at::kDouble);
  EXPECT_THROW(cpu::kernels.silu_gate(x, out), Bug);
}

}  // namespace
}  // namespace kedge
