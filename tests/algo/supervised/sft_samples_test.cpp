#include "kedge/algo/supervised/sft_samples.h"

#include <gtest/gtest.h>

#include "kedge/engine/engine.h"

#include "tests/support/model_logits.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::byte_model;
using testing::model_logits;

MaskedTokens row_of(const Tokenizer& tokenizer, const std::string& prompt, const std::string& answer) {
  MaskedTokens row;
  row.append(tokenizer.encode(prompt), false);
  row.append(tokenizer.encode(answer), true);
  return row;
}

TEST(SftSamples, AreTheLikeliestAnswersBesideTheWantedOnes) {
  const std::unique_ptr<Model> model = byte_model();
  const std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  SftSamples samples(model, *tokenizer, {.max_tokens = 6});
  samples.add(row_of(*tokenizer, "what?", "this"));
  samples.add(row_of(*tokenizer, "", "no prompt"));
  samples.add(row_of(*tokenizer, "no answer", ""));
  const auto tables = samples.draw();
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables[0].rows.size(), 1U);
  const Sample& sample = tables[0].rows[0];
  EXPECT_EQ(sample.prompt, "what?");
  EXPECT_FALSE(sample.reward.has_value());
  EXPECT_EQ(Json(sample.extra).at("wanted", ""), Json("this"));
  // The same by the network itself, one token at a time.
  TokenIds ids = tokenizer->encode("what?");
  TokenIds drawn;
  for (int i = 0; i < 6; ++i) {
    const Tensor logits = model_logits(*model, pack_rows(std::vector<TokenIds>{ids}, at::kCPU));
    const auto next = static_cast<TokenId>(logits[logits.size(0) - 1].argmax().item<int64_t>());
    drawn.push_back(next);
    if (next == tokenizer->special().eos) break;
    ids.push_back(next);
  }
  EXPECT_EQ(sample.response, tokenizer->decode_text(drawn, SpecialTokens::skip));
}

// Two layers of one head of 8 for keys and values, 4 bytes each: 128 bytes a token.
TEST(SftSamples, TheirMemoryIsThatOfTheirTokensTwiceAndABit) {
  EXPECT_EQ(sample_cache_bytes(testing::tiny_config(testing::kByteLlama), 4, 100), 128 * (200 + 1024));
}

TEST(SftSamples, WithoutPromptsThereAreNone) {
  const std::unique_ptr<Model> model = byte_model();
  const std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  EXPECT_TRUE(SftSamples(model, *tokenizer, {}).draw().empty());
}

}  // namespace
}  // namespace kedge
