#include "kedge/text/unicode/unicode_table.h"

#include <gtest/gtest.h>

#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

Category category_at(char32_t code) {
  uint32_t found = 0;
  for (const uint32_t run : category_runs())
    if (run >> 8U <= code) found = run & 0xFFU;
  return static_cast<Category>(found);
}

TEST(UnicodeTable, RunsCoverAllCodePointsInOrder) {
  const auto runs = category_runs();
  EXPECT_EQ(runs.front() >> 8U, 0U);
  for (size_t i = 1; i < runs.size(); ++i) ASSERT_LT(runs[i - 1] >> 8U, runs[i] >> 8U);
  EXPECT_LT(runs.back() >> 8U, 0x110000U);
}

TEST(UnicodeTable, KnowsCharactersOfManyKinds) {
  EXPECT_EQ(category_at(U'A'), Category::Lu);
  EXPECT_EQ(category_at(U'\u00e9'), Category::Ll);
  EXPECT_EQ(category_at(U'7'), Category::Nd);
  EXPECT_EQ(category_at(U'\u4e2d'), Category::Lo);
  EXPECT_EQ(category_at(U' '), Category::Zs);
  EXPECT_EQ(category_at(U'\u0301'), Category::Mn);
  EXPECT_EQ(category_at(U'\n'), Category::Cc);
  EXPECT_EQ(category_at(U'\U0001F600'), Category::So);
}

TEST(UnicodeTable, RangesAreInOrder) {
  for (const auto ranges : {frozen_codes(), late_punctuation()})
    for (size_t i = 0; i < ranges.size(); ++i) {
      ASSERT_LE(ranges[i].first, ranges[i].last);
      if (i > 0) {
        ASSERT_LT(ranges[i - 1].last, ranges[i].first);
      }
    }
}

}  // namespace
}  // namespace kedge
