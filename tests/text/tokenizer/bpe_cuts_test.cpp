#include "kedge/text/tokenizer/bpe_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> parts(const BpeCuts& cuts, std::string_view text) {
  std::vector<std::string> found;
  cuts.each_part(text, [&](std::string_view part) { found.emplace_back(part); });
  return found;
}

TEST(BpeCuts, CutsWhereNoTokenHasTheTwoSideBySide) {
  BpeCuts cuts({'a', 'b', 'c', 0x2581});
  cuts.add_token("ab");
  cuts.add_token("\u2581a");
  EXPECT_THAT(parts(cuts, "abcab\u2581ab"), ElementsAre("ab", "c", "ab", "\u2581ab"));
  EXPECT_THAT(parts(cuts, "aa"), ElementsAre("a", "a"));
}

TEST(BpeCuts, CutsOnlyBeforeKnownCharacters) {
  const BpeCuts cuts({'a'});
  EXPECT_THAT(parts(cuts, "xyaxy"), ElementsAre("xy", "axy"));
  EXPECT_THAT(parts(cuts, "\u00E9\u00E9a"), ElementsAre("\u00E9\u00E9", "a"));
}

TEST(BpeCuts, CutsNowhereWithoutATable) {
  EXPECT_THAT(parts(BpeCuts(), "abc"), ElementsAre("abc"));
  EXPECT_THAT(parts(BpeCuts({'a'}), ""), ElementsAre(""));
}

}  // namespace
}  // namespace kedge
