#include "kedge/dist/transport.h"

#include <gtest/gtest.h>

#include <vector>

#include <ATen/ops/equal.h>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

// One rank that talks to itself.
class Alone final : public Transport {
 public:
  [[nodiscard]] std::string_view name() const override { return "alone"; }
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override { from[0].copy_(to[0]); }
};

TEST(Transport, SumsAreMadeInOrder) {
  // 1e8 + 1 - 1e8 is 0 in fp32 and in no other order.
  const std::vector<Tensor> parts = {at::full({3}, 1e8), at::ones({3}), at::full({3}, -1e8)};
  const Tensor sum = at::empty({3});
  sum_in_order(parts, sum);
  EXPECT_TRUE(at::equal(sum, at::zeros({3})));
  sum_in_order(parts, parts[0]);
  EXPECT_TRUE(at::equal(parts[0], at::zeros({3})));
}

TEST(Transport, NarrowNumbersAreRoundedOnce) {
  const auto narrow = [](double value) { return at::full({2}, value, at::kBFloat16); };
  const std::vector<Tensor> parts = {narrow(256), narrow(0.75), narrow(0.75)};  // 256 + 0.75 is 256 in bf16
  const Tensor sum = at::empty({2}, at::kBFloat16);
  sum_in_order(parts, sum);
  EXPECT_EQ(sum[0].item<float>(), 258);  // 257.5 to an even last digit
}

TEST(Transport, WhatIsNotGivenIsMadeOfExchanges) {
  Alone transport;
  const Tensor mine = testing::normals({5}, 1), all = at::zeros({5}), own = at::zeros({5});
  transport.all_gather(mine, all);
  EXPECT_TRUE(at::equal(all, mine));
  transport.fast_reduce_scatter(mine, own);
  EXPECT_TRUE(at::equal(own, mine));
}

}  // namespace
}  // namespace kedge
