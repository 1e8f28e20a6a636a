#include "kedge/data/sets/hh_dialogue.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(HhDialogue, IsCutIntoTurns) {
  const auto turns = hh_turns("\n\nHuman: a\n\nb\n\nAssistant: c\n\nHuman:\n\nHuman: d");
  ASSERT_TRUE(turns);
  EXPECT_EQ(*turns, (std::vector<HhTurn>{{true, " a\n\nb"}, {false, " c"}, {true, ""}, {true, " d"}}));
  EXPECT_TRUE(hh_turns("")->empty());
}

TEST(HhDialogue, OtherTextIsNone) {
  EXPECT_FALSE(hh_turns("Human: a"));
  EXPECT_FALSE(hh_turns("x\n\nHuman: a"));
  EXPECT_FALSE(hh_prompt("\n\nHuman: a"));
}

TEST(HhDialogue, ThePromptEndsWithTheLastAssistantsName) {
  const auto texts = hh_prompt("\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: d");
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->prompt, "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:");
  EXPECT_EQ(texts->response, " d");
}

}  // namespace
}  // namespace kedge
