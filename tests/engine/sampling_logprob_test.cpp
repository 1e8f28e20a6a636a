// The sampler's log-probs beside those of training, which needs tensors that the sampler does not know.
#include <gtest/gtest.h>

#include "kedge/engine/sampling.h"
#include "kedge/model/kernels/ops.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

TEST(SamplingLogprob, HasTheBitsOfTraining) {
  SamplingScratch scratch;
  for (const int64_t vocab_size : {3, 16, 127, 128, 2048, 5003})
    for (const SamplingConfig& config : {SamplingConfig{}, SamplingConfig{.temperature = 0.7}, SamplingConfig{.top_k = 50, .top_p = 0.9}})
      for (const double temperature : {1.0, 0.6, 1.5, 0.7}) {
        constexpr int64_t kRows = 20;
        const Tensor logits = testing::normals({kRows, vocab_size}, 1, 4);
        std::vector<int64_t> drawn;
        std::vector<float> logprobs;
        for (int64_t row = 0; row < kRows; ++row) {
          const std::span<const float> one(logits.const_data_ptr<float>() + row * vocab_size, static_cast<size_t>(vocab_size));
          const auto token =
              draw_token(one, config, {.uniform = static_cast<double>(row) / kRows, .logprob_temperature = temperature}, scratch);
          ASSERT_TRUE(token.has_value());
          EXPECT_EQ(token->token, draw_token(one, config, {.uniform = static_cast<double>(row) / kRows}, scratch)->token);
          drawn.push_back(token->token);
          logprobs.push_back(token->logprob);
        }
        const Tensor trained = logit_stats(logits, testing::longs(drawn), false, temperature).logprob;
        EXPECT_TRUE(testing::same_bits(trained, at::tensor(logprobs))) << vocab_size << " at " << temperature;
      }
}

}  // namespace
}  // namespace kedge
