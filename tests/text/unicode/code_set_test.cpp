#include "kedge/text/unicode/code_set.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

CodeSet set(std::vector<CodeRange> ranges) { return CodeSet(std::move(ranges)); }

TEST(CodeSet, JoinsRangesThatTouch) {
  const CodeSet joined = set({{'x', 'z'}, {'a', 'c'}, {'b', 'e'}, {'f', 'f'}});
  ASSERT_EQ(joined.ranges().size(), 2U);
  EXPECT_EQ(joined, set({{'a', 'f'}, {'x', 'z'}}));
  EXPECT_TRUE(joined.contains('d'));
  EXPECT_FALSE(joined.contains('g'));
  EXPECT_TRUE(joined.contains('x'));
}

TEST(CodeSet, CombinesAsSetsDo) {
  const CodeSet letters = set({{'a', 'z'}});
  const CodeSet vowels = set({{'a', 'a'}, {'e', 'e'}});
  EXPECT_EQ(letters.without(vowels), set({{'b', 'd'}, {'f', 'z'}}));
  EXPECT_EQ(letters.common(set({{'x', 0x100}})), set({{'x', 'z'}}));
  EXPECT_EQ(vowels.united(set({{'b', 'd'}})), set({{'a', 'e'}}));
  EXPECT_EQ(letters.complement().complement(), letters);
  EXPECT_EQ(CodeSet::all().complement(), CodeSet());
  EXPECT_EQ(CodeSet().complement(), CodeSet::all());
}

TEST(CodeSet, HoldsTheGeneralCategories) {
  EXPECT_EQ(CodeSet::spaces().ranges().size(), 10U);
  const auto letters = category_set("L");
  ASSERT_TRUE(letters);
  EXPECT_TRUE(letters->contains('q'));
  EXPECT_TRUE(letters->contains(0x323AF));
  EXPECT_FALSE(letters->contains('1'));
  EXPECT_EQ(category_set("Lu")->common(*category_set("Ll")), CodeSet());
  EXPECT_FALSE(category_set("Xx"));
  EXPECT_FALSE(category_set(""));
}

}  // namespace
}  // namespace kedge
