#include "kedge/text/tokenizer/byte_level.h"

#include <gtest/gtest.h>

#include <set>

namespace kedge {
namespace {

TEST(ByteLevel, WritesEveryByteAsAVisibleCharacterOfItsOwn) {
  std::set<char32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t code = byte_to_char(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(code).second);
    EXPECT_EQ(char_to_byte(code), static_cast<uint8_t>(byte));
  }
  EXPECT_EQ(byte_to_char('A'), U'A');
  EXPECT_EQ(byte_to_char(' '), U'\u0120');
  EXPECT_EQ(byte_to_char('\n'), U'\u010A');
  EXPECT_EQ(byte_to_char(0xAD), U'\u0143');  // the last of them
  EXPECT_FALSE(char_to_byte(U' '));
  EXPECT_FALSE(char_to_byte(U'\u2581'));
}

TEST(ByteLevel, SpellsTextAndReadsItBack) {
  std::string spelled;
  append_byte_level(spelled, "a \u00E9");
  EXPECT_EQ(spelled, "a\u0120\u00C3\u00A9");
  EXPECT_EQ(from_byte_level(spelled), "a \u00E9");
  EXPECT_EQ(from_byte_level("a b"), std::nullopt);
  EXPECT_EQ(from_byte_level(""), "");
}

TEST(ByteLevel, KnowsTheTokensOfByteFallback) {
  EXPECT_EQ(byte_token(0x0A), "<0x0A>");
  EXPECT_EQ(byte_token(0xFF), "<0xFF>");
  EXPECT_EQ(byte_of_token("<0x0A>"), 0x0A);
  EXPECT_EQ(byte_of_token("<0xff>"), 0xFF);
  for (const char* none : {"<0x0>", "<0x0AA>", "<0xG0>", "0x0A", "<0x0A)", ""}) EXPECT_EQ(byte_of_token(none), std::nullopt) << none;
}

}  // namespace
}  // namespace kedge
