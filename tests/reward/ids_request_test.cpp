#include "kedge/reward/ids_request.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

Rollouts two_rows() {
  Rollout a, b;
  a.ids = {5, 6, 7};
  b.ids = {8};
  return {std::make_shared<Rollout>(a), std::make_shared<Rollout>(b)};
}

TEST(IdsRequest, RowsAreFilledUpWithZeros) {
  const InferRequest request = ids_request(two_rows(), {});
  EXPECT_EQ(request.inputs.at(0), int64_tensor("tokens", {2, 3}, std::vector<int64_t>{5, 6, 7, 8, 0, 0}));
  EXPECT_EQ(request.inputs.at(1), int64_tensor("sequence_lengths", {2, 1}, std::vector<int64_t>{3, 1}));
}

TEST(IdsRequest, ToTheWidthThatIsAskedFor) {
  EXPECT_EQ(ids_request(two_rows(), 4).inputs.at(0), int64_tensor("tokens", {2, 4}, std::vector<int64_t>{5, 6, 7, 0, 8, 0, 0, 0}));
  EXPECT_EQ(testing::error_of<UsageError>([] { (void)ids_request(two_rows(), 2); }), "pad_to_length: 2 tokens, but a rollout has 3");
}

}  // namespace
}  // namespace kedge
