#include "kedge/text/tokenizer/byte_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(ByteTokenizer, AByteIsItsOwnId) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_THAT(tokenizer->encode("A \u00E9"), ElementsAre(0x41, 0x20, 0xC3, 0xA9));
  std::string all;
  for (int byte = 0; byte < 128; ++byte) all += static_cast<char>(byte);
  const TokenIds ids = tokenizer->encode(all);
  ASSERT_EQ(ids.size(), 128U);
  for (int byte = 0; byte < 128; ++byte) EXPECT_EQ(ids[static_cast<size_t>(byte)], byte);
  EXPECT_EQ(tokenizer->decode(ids), all);
}

TEST(ByteTokenizer, HasThreeSpecialTokens) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 259);
  EXPECT_EQ(tokenizer->special().pad, 256);
  EXPECT_EQ(tokenizer->special().bos, 257);
  EXPECT_EQ(tokenizer->special().eos, 258);
  EXPECT_THAT(tokenizer->encode("a<eos>"), ElementsAre('a', 258));
  EXPECT_THAT(tokenizer->encode("a<eos>", {.match_special = false}), ElementsAre('a', '<', 'e', 'o', 's', '>'));
}

TEST(ByteTokenizer, LoadsBackFromAFolder) {
  const testing::TempFolder folder;
  byte_tokenizer_files().write(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->fingerprint(), make_byte_tokenizer()->fingerprint());
  EXPECT_EQ(loaded->special().eos, 258);
}

}  // namespace
}  // namespace kedge
