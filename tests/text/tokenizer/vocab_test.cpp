#include "kedge/text/tokenizer/vocab.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

TEST(Vocab, LooksUpBothWays) {
  Vocab vocab;
  ASSERT_TRUE(vocab.add("a", 0));
  ASSERT_TRUE(vocab.add("", 3));  // an empty token is a token
  EXPECT_EQ(vocab.find("a"), 0);
  EXPECT_EQ(vocab.find(""), 3);
  EXPECT_EQ(vocab.find("b"), std::nullopt);
  EXPECT_EQ(vocab.token(0), "a");
  EXPECT_EQ(vocab.token(1), "");
  EXPECT_FALSE(vocab.has(1));
  EXPECT_TRUE(vocab.has(3));
  EXPECT_EQ(vocab.end_id(), 4);
  EXPECT_EQ(vocab.num_tokens(), 2U);
  EXPECT_EQ(Vocab().find("a"), std::nullopt);
}

TEST(Vocab, RefusesWhatIsThereAlready) {
  Vocab vocab;
  ASSERT_TRUE(vocab.add("a", 0));
  EXPECT_FALSE(vocab.add("a", 1));
  EXPECT_FALSE(vocab.add("b", 0));
  EXPECT_FALSE(vocab.add("b", -1));
  EXPECT_FALSE(vocab.add("b", Vocab::kMaxId + 1));
  EXPECT_EQ(vocab.num_tokens(), 1U);
}

TEST(Vocab, HoldsManyTokensWithAndWithoutReserving) {
  for (const bool reserved : {false, true}) {
    Vocab vocab;
    if (reserved) vocab.reserve(5000);
    for (TokenId id = 0; id < 5000; ++id) ASSERT_TRUE(vocab.add(str("token ", id * 7), id));
    for (TokenId id = 0; id < 5000; ++id) ASSERT_EQ(vocab.find(str("token ", id * 7)), id);
  }
}

TEST(Vocab, HashesDifferInEveryLength) {
  EXPECT_NE(hash_bytes("a"), hash_bytes(std::string_view("a\0", 2)));
  EXPECT_NE(hash_bytes("12345678"), hash_bytes("123456789"));
  EXPECT_EQ(hash_bytes("the same words"), hash_bytes(std::string("the same words")));
}

}  // namespace
}  // namespace kedge
