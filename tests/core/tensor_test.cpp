#include "kedge/core/tensor.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(Tensor, TheDoorOpensToOperators) {
  const Tensor a = at::ones({2, 3});
  const Tensor b = at::cat({a, a * 2}, 0);
  EXPECT_EQ(b.sum().item<double>(), 18.0);
  EXPECT_EQ(b.size(0), 4);
}

}  // namespace
}  // namespace kedge
