#include "kedge/dist/counting_transport.h"

#include <gtest/gtest.h>

#include <vector>

#include <ATen/ops/equal.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

// Rank 1 of 3 identical ones: what it gets from the others is what it sends itself.
class Mirror final : public Transport {
 public:
  [[nodiscard]] std::string_view name() const override { return "mirror"; }
  [[nodiscard]] int rank() const override { return 1; }
  [[nodiscard]] int size() const override { return 3; }
  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override {
    for (const Tensor& part : from) part.copy_(to[1]);
  }
  void check() override { throw Error("a broken mirror"); }
};

TEST(CountingTransport, CountsWhatGoesToOtherRanks) {
  CountingTransport transport(1, 3);
  const auto floats = [](int64_t numel) { return at::empty({numel}, at::TensorOptions(at::kFloat).device(at::kMeta)); };
  transport.exchange(std::vector{floats(10), floats(1000), floats(0)}, std::vector{floats(7), floats(1000), floats(3)});
  EXPECT_EQ(transport.traffic().calls, 1);
  EXPECT_EQ(transport.traffic().bytes_sent, 40);
  transport.all_gather(floats(5), floats(15));
  EXPECT_EQ(transport.traffic().calls, 2);
  EXPECT_EQ(transport.traffic().bytes_sent, 40 + 2 * 20);
  transport.fast_reduce_scatter(floats(15).to(at::kBFloat16), floats(5).to(at::kBFloat16));
  EXPECT_EQ(transport.traffic().calls, 3);
  EXPECT_EQ(transport.traffic().bytes_sent, 40 + 40 + 2 * 10);
  transport.reset_traffic();
  EXPECT_EQ(transport.traffic().calls, 0);
  EXPECT_EQ(transport.traffic().bytes_sent, 0);
}

TEST(CountingTransport, OverNoneNothingIsMoved) {
  CountingTransport transport(0, 2);
  EXPECT_EQ(transport.rank(), 0);
  EXPECT_EQ(transport.size(), 2);
  const std::vector<Tensor> to{at::ones({4}), at::ones({4})}, from{at::zeros({4}), at::zeros({4})};
  transport.exchange(to, from);
  EXPECT_TRUE(at::equal(from[0], at::zeros({4})));
  transport.check();
}

TEST(CountingTransport, OverAnotherItIsThatOne) {
  CountingTransport transport(std::make_shared<Mirror>());
  EXPECT_EQ(transport.rank(), 1);
  EXPECT_EQ(transport.size(), 3);
  const Tensor mine = at::tensor({1.0F, 2.0F}), all = at::zeros({6}), own = at::zeros({2});
  transport.all_gather(mine, all);
  EXPECT_TRUE(at::equal(all, mine.repeat({3})));
  transport.fast_reduce_scatter(all, own);
  EXPECT_TRUE(at::equal(own, mine * 3));
  EXPECT_EQ(transport.traffic().calls, 2) << "the calls below are not counted again";
  EXPECT_EQ(transport.traffic().bytes_sent, 2 * (2 * 8));
  EXPECT_EQ(testing::error_of<Error>([&] {
              transport.check();
              return 0;
            }),
            "a broken mirror");
}

TEST(CountingTransport, SizesMustFit) {
  CountingTransport transport(0, 2);
  EXPECT_THROW(transport.all_gather(at::zeros({2}), at::zeros({3})), Bug);
  EXPECT_THROW(transport.exchange(std::vector{at::zeros({1})}, std::vector{at::zeros({1})}), Bug);
  EXPECT_THROW(CountingTransport(2, 2), Bug);
}

}  // namespace
}  // namespace kedge
