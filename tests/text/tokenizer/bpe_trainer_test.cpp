#include "kedge/text/tokenizer/bpe_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> merges_of(const TokenizerFiles& files) {
  std::vector<std::string> merges;
  for (const Json& merge : files.tokenizer.at("model", "").at("merges", "").as_array(""))
    merges.push_back(merge.as_array("")[0].as_text("") + " " + merge.as_array("")[1].as_text(""));
  return merges;
}

TEST(BpeTrainer, MergesTheMostFrequentPairFirst) {
  // Words: ab 3 times, abc once, " ab" twice. ab: 6; then space-ab: 2; ab-c once is too seldom.
  const std::vector<std::string> texts = {"ab ab", "ab ab", "ab", "abc"};
  const TokenizerFiles files =
      train_bpe(texts, {.vocab_size = 1000, .min_count = 2, .special_tokens = {"<eos>"}, .roles = {.bos = "", .eos = "<eos>", .pad = ""}});
  EXPECT_THAT(merges_of(files), ElementsAre("a b", "\u0120 ab"));
  const auto tokenizer = files.load();
  EXPECT_EQ(tokenizer->vocab_size(), 1 + 256 + 2);
  EXPECT_THAT(tokenizer->encode(" ab<eos>"), ElementsAre(258, 0));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("any t\u00E9xt \U0001F600")), "any t\u00E9xt \U0001F600");
}

TEST(BpeTrainer, AmongEqualsThePairOfTheLowerIds) {
  const std::vector<std::string> texts = {"cd cd ab ab"};  // ab and cd twice each, and the pairs with the spaces before them less often
  EXPECT_EQ(merges_of(train_bpe(texts, {.vocab_size = 256 + 3 + 2})).front(), "a b");
}

TEST(BpeTrainer, CountsRunsAsItMergesThem) {
  // aaaa holds the pair aa three times over, but merging leaves two tokens, which merge again.
  const std::vector<std::string> texts = {"aaaa", "aaaa"};
  EXPECT_THAT(merges_of(train_bpe(texts, {})), ElementsAre("a a", "aa aa"));
}

TEST(BpeTrainer, StopsAtTheSizeItWasGiven) {
  const std::vector<std::string> texts = {"the same words again and again and again, the same words"};
  EXPECT_EQ(train_bpe(texts, {.vocab_size = 262}).load()->vocab_size(), 262);
  EXPECT_EQ(train_bpe(texts, {.vocab_size = 262}).tokenizer, train_bpe(texts, {.vocab_size = 262}).tokenizer);
}

TEST(BpeTrainer, NamesWhatIsWrong) {
  EXPECT_EQ(testing::error_of([] { return train_bpe({}, {.vocab_size = 100}); }),
            "a vocabulary of 100 is too small: 259 or more are needed for bytes and special tokens");
  const std::vector<std::string> broken = {"fine", "bad\xFF"};
  EXPECT_EQ(testing::error_of([&] { return train_bpe(broken, {}); }), "text 1 is not UTF-8 at byte 3");
  EXPECT_EQ(testing::error_of([&] {
              return train_bpe({}, {.special_tokens = {"<a>", "<a>"}});
            }),
            "a special token is empty or occurs twice: \"<a>\"");
}

}  // namespace
}  // namespace kedge
