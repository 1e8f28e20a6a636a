#include "kedge/text/tokenizer/charsmap.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

std::string four_bytes(uint32_t value) {
  std::string out;
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xFFU);
  return out;
}

// A trie by hand with the entries "a" -> "A!" and "ab" -> "". A unit is its children's offset << 10, a flag 0x100 where an entry
// ends, and the byte that leads to it; an entry's value stands at its children's offset itself.
std::string table() {
  std::vector<uint32_t> units(1024, 0);
  units[0] = 0x100U << 10U;  // the root's children at 0x100 ^ byte
  const uint32_t a = 0x100 ^ 'a';
  const uint32_t below_a = 0x200;  // children of "a"
  units[a] = (a ^ below_a) << 10U | 0x100U | 'a';
  units[below_a] = 1U << 31U | 0U;  // "a": the text at 0
  const uint32_t ab = below_a ^ 'b';
  const uint32_t below_ab = 0x300;
  units[ab] = (ab ^ below_ab) << 10U | 0x100U | 'b';
  units[below_ab] = 1U << 31U | 3U;  // "ab": the text at 3
  std::string blob = four_bytes(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) blob += four_bytes(unit);
  return blob + std::string("A!\0\0", 4);
}

TEST(Charsmap, FindsTheLongestEntry) {
  const Charsmap map(table(), "here");
  EXPECT_EQ(map.longest("ax").length, 1U);
  EXPECT_EQ(map.longest("ax").replacement, "A!");
  EXPECT_EQ(map.longest("abx").length, 2U);
  EXPECT_EQ(map.longest("abx").replacement, "");
  EXPECT_EQ(map.longest("x").length, 0U);
  EXPECT_EQ(map.longest("").length, 0U);
  EXPECT_EQ(Charsmap().longest("a").length, 0U);
}

TEST(Charsmap, ReplacesGraphemesByTheirShortestEntry) {
  const Charsmap map(table(), "here");
  EXPECT_EQ(map.replace_graphemes("cab"), "cA!b");
  EXPECT_EQ(map.replace_graphemes("a\u0301b"), "A!b");                              // the mark goes with its letter
  EXPECT_EQ(map.replace_graphemes("a\u0301\u0302\u0303"), "A!\u0301\u0302\u0303");  // seven bytes: character by character
}

TEST(Charsmap, BrokenTablesAreRefusedOrHarmless) {
  const auto error = [](const std::string& blob) { return testing::error_of([&] { return Charsmap(blob, "here"); }); };
  EXPECT_EQ(error("abc"), "here: the table of replacements is cut short");
  EXPECT_EQ(error(four_bytes(1000) + "x"), "here: the table of replacements says it has 1000 bytes of 1");
  EXPECT_EQ(error(four_bytes(4) + "\1\1\1\1" + "x"), "here: the last replacement has no end");
  EXPECT_EQ(error(four_bytes(4) + "\1\1\1\1" + std::string("\xFF\0", 2)), "here: a replacement is not UTF-8");
  EXPECT_EQ(testing::error_of([] { return Charsmap::from_base64("$$$$", "here"); }), "here: not base64");
  // Every offset points far outside.
  std::string wild = four_bytes(1024);
  for (int i = 0; i < 256; ++i) wild += four_bytes(0xFFFFFDFFU);
  const Charsmap map(wild + std::string("x\0", 2), "here");
  for (int byte = 1; byte < 256; ++byte) EXPECT_EQ(map.longest(std::string(3, static_cast<char>(byte))).length, 0U);
}

TEST(Charsmap, ReadsBase64) {
  EXPECT_TRUE(Charsmap::from_base64("", "here").empty());
  EXPECT_EQ(testing::error_of([] { return Charsmap::from_base64("YWJj", "here"); }),
            "here: the table of replacements is cut short");  // "abc"
}

}  // namespace
}  // namespace kedge
