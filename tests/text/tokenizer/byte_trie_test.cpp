#include "kedge/text/tokenizer/byte_trie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ByteTrie, FindsTheLongestEntry) {
  const ByteTrie trie({{"a", 1}, {"abc", 2}, {"b", 3}});
  EXPECT_EQ(trie.longest("abcd").length, 3U);
  EXPECT_EQ(trie.longest("abcd").value, 2);
  EXPECT_EQ(trie.longest("abx").value, 1);
  EXPECT_EQ(trie.longest("b").value, 3);
  EXPECT_EQ(trie.longest("x").length, 0U);
  EXPECT_EQ(trie.longest("").length, 0U);
}

TEST(ByteTrie, FindsEveryEntryThatStartsHereShortOnesFirst) {
  const ByteTrie trie({{"\u00E9", 5}, {"\u00E9t", 6}, {"\u00E9t\u00E9", 7}});
  std::vector<std::pair<size_t, int32_t>> found;
  trie.each_prefix("\u00E9t\u00E9!", [&](size_t length, int32_t value) { found.emplace_back(length, value); });
  EXPECT_THAT(found, ElementsAre(Pair(2, 5), Pair(3, 6), Pair(5, 7)));
}

TEST(ByteTrie, TakesTheLastOfEqualEntriesAndNoEmptyOnes) {
  const ByteTrie trie({{"a", 1}, {"", 9}, {"a", 2}});
  EXPECT_EQ(trie.longest("a").value, 2);
  EXPECT_TRUE(ByteTrie({{"", 9}}).empty());
  EXPECT_TRUE(ByteTrie().empty());
  EXPECT_EQ(ByteTrie().longest("a").length, 0U);
}

TEST(ByteTrie, TellsAllBytesApart) {
  std::vector<std::string> keys;
  for (int byte = 0; byte < 256; ++byte) keys.push_back({'x', static_cast<char>(byte)});
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (int byte = 0; byte < 256; ++byte) entries.emplace_back(keys[static_cast<size_t>(byte)], byte);
  const ByteTrie trie(entries);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(trie.longest(keys[static_cast<size_t>(byte)]).value, byte);
}

}  // namespace
}  // namespace kedge
