#include "kedge/data/files/blend.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

std::string picks(const Blend& blend, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const Blend::Pick pick = blend.pick(i);
    text += static_cast<char>('a' + pick.part);
    text += std::to_string(pick.index) + " ";
  }
  return text;
}

TEST(Blend, OnePartIsItself) {
  const Blend blend({{0.3, 5}});
  EXPECT_EQ(blend.size(), 5);
  EXPECT_EQ(picks(blend, 5), "a0 a1 a2 a3 a4 ");
}

// Shares 0.25 and 0.75; lag after j examples is share * (j + 1) - count. j=0: 0.25, 0.75: b. j=1: 0.5, 0.5: a, the first.
// j=2: -0.25, 1.25: b. j=3: 0, 1: b. Then the same again; b has three rows and starts over.
TEST(Blend, TheFurthestBehindItsShareComesNext) {
  const Blend blend({{1, 5}, {3, 3}});
  EXPECT_EQ(blend.size(), 8);
  EXPECT_EQ(picks(blend, 8), "b0 a0 b1 b2 b0 a1 b1 b2 ");
}

TEST(Blend, SharesHoldAndRowsComeInTurnOverManyExamples) {
  const Blend blend({{0.5, 3000}, {0.3, 3000}, {0.2, 4000}});
  EXPECT_EQ(blend.size(), 10000);
  std::vector<int64_t> counts(3, 0);
  for (int64_t i = 0; i < blend.size(); ++i) {
    const Blend::Pick pick = blend.pick(i);
    const int64_t size = pick.part == 2 ? 4000 : 3000;
    ASSERT_EQ(pick.index, counts[pick.part] % size) << i;
    ++counts[pick.part];
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{5000, 3000, 2000}));
}

TEST(Blend, BadPartsAreRefused) {
  EXPECT_EQ(error_of([] { Blend({}); }), "a blend of no data sets");
  EXPECT_EQ(error_of([] { Blend({{1, 0}}); }), "a blend with an empty data set");
  EXPECT_EQ(error_of([] { Blend({{0, 3}, {1, 3}}); }), "a blend's weight of 0; expected a number above 0");
}

}  // namespace
}  // namespace kedge
