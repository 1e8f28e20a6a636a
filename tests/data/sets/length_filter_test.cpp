#include "kedge/data/sets/length_filter.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

const auto where_row_is = [](int64_t i) { return "row " + std::to_string(i); };

TEST(Replacements, TheNextThatFitsStandsInRoundTheEnd) {
  const Replacements replacements("short ones");
  const auto read = [](int64_t i) { return i == 1 || i == 4 ? std::nullopt : std::optional<int64_t>(10 * i); };
  const auto find = [&](int64_t i) { return replacements.find<int64_t>(i, 5, read, where_row_is); };
  EXPECT_EQ(find(0), 0);
  EXPECT_EQ(replacements.count(), 0);
  EXPECT_EQ(find(1), 20);
  EXPECT_EQ(find(4), 0);
  EXPECT_EQ(replacements.count(), 2);
}

TEST(Replacements, WhereNothingFitsTheDataSetIsRefused) {
  const Replacements replacements("prompts of at most 2 tokens");
  EXPECT_EQ(error_of([&] {
              replacements.find<int64_t>(
                  1, 3, [](int64_t) { return std::nullopt; }, where_row_is);
            }),
            "row 0: no row fits; expected prompts of at most 2 tokens");
}

TEST(KeptRows, AreAllUntilSomeAreLeftOut) {
  KeptRows kept(10);
  kept.filter([](int64_t) { return true; });
  EXPECT_EQ(kept.size(), 10);
  EXPECT_EQ(kept[7], 7);
  kept.filter([](int64_t row) { return row % 2 == 1; });
  EXPECT_EQ(kept.size(), 5);
  EXPECT_EQ(kept[2], 5);
  kept.filter([](int64_t row) { return row > 4; });  // asks about rows, not positions
  EXPECT_EQ(kept.size(), 3);
  EXPECT_EQ(kept[0], 5);
  EXPECT_EQ(kept.num_dropped(), 7);
}

}  // namespace
}  // namespace kedge
