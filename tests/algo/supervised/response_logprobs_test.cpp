#include "kedge/algo/supervised/response_logprobs.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

TEST(ResponseLogprobs, AddUpTheTokensAfterThePrompt) {
  const auto model = testing::byte_model();
  const std::vector<ResponseRow> rows = {{{10, 20, 30, 40}, 2}, {{1, 2}, 2}, {{5, 6, 7}, 0}};
  const Tensor found = response_logprobs(*model, rows);
  const PackedBatch alone = pack_rows(std::vector<TokenIds>{{10, 20, 30}}, at::kCPU);
  const Tensor tokens = model_logprobs(*model, alone, {at::tensor({1, 2}, at::kLong), at::tensor({30, 40}, at::kLong)}).logprobs;
  EXPECT_NEAR(found[0].item<double>(), tokens.sum().item<double>(), 1e-5);
  EXPECT_EQ(found[1].item<double>(), 0);  // an empty response
  EXPECT_EQ(rows[0].num_predicted(), 2);
  EXPECT_EQ(rows[1].num_predicted(), 0);
  EXPECT_EQ(rows[2].num_predicted(), 2);  // nothing predicts the first token
  EXPECT_EQ(num_fed(rows), 3 + 1 + 2);
}

TEST(ResponseLogprobs, RowsWithoutAResponseAreZeros) {
  const auto model = testing::byte_model();
  const std::vector<ResponseRow> rows = {{{3}, 1}, {{1, 2}, 2}};
  const Tensor found = response_logprobs(*model, rows);
  EXPECT_EQ(found.size(0), 2);
  EXPECT_EQ(found.abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace kedge
