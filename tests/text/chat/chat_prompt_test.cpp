#include "kedge/text/chat/chat_prompt.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

using Type = Conversation::Type;

const ChatPromptTokens kTokens = {.system_turn_start = "S", .turn_start = "T", .label_start = "L", .end_of_turn = ".", .end_of_name = ":"};

// The text with what is trained on in brackets.
std::string marked(const Conversation& chat) {
  std::string text;
  bool open = false;
  for (const TextPiece& piece : chat_pieces(chat, kTokens)) {
    if (piece.text.empty()) continue;
    if (piece.trained != open) text += open ? "]" : "[";
    open = piece.trained;
    text += piece.text;
  }
  return text + (open ? "]" : "");
}

Conversation chat(std::vector<Conversation::Turn> turns, Type type = Type::plain) {
  return {.system = "sys", .masked_roles = {"U"}, .type = type, .turns = std::move(turns)};
}

// The same rules as the worked cases of the specification: header 0; first turn 0; a masked role's turn_start 1 from the third turn
// on; other turns 1 behind the name; one more turn_start when the last turn is trained on.
TEST(ChatPrompt, AnswersAreTrainedOnWithTheStartOfTheNextTurn) {
  EXPECT_EQ(marked(chat({{"U", "q1", {}}, {"A", "a1", {}}, {"U", "q2", {}}, {"A", "a2", {}}})),
            "SSystem:sys.TU:q1.TA:[a1.T]U:q2.TA:[a2.T]");
}

TEST(ChatPrompt, AnEmptySystemPromptStillHasItsTurn) {
  Conversation empty = chat({{"U", "q", {}}, {"A", "a", {}}});
  empty.system.clear();
  EXPECT_EQ(marked(empty), "SSystem:.TU:q.TA:[a.T]");
}

TEST(ChatPrompt, OneTurnTeachesNothingButItsEnd) {
  EXPECT_EQ(marked(chat({{"A", "a", {}}})), "SSystem:sys.TA:a.[T]");
  EXPECT_EQ(marked(chat({{"U", "q", {}}})), "SSystem:sys.TU:q.");
}

TEST(ChatPrompt, NoTurnIsOpenedBehindTheUser) {
  EXPECT_EQ(marked(chat({{"U", "q1", {}}, {"A", "a", {}}, {"U", "q2", {}}})), "SSystem:sys.TU:q1.TA:[a.T]U:q2.");
}

TEST(ChatPrompt, ASecondTurnOfAMaskedRoleIsMaskedWhole) {
  EXPECT_EQ(marked(chat({{"A", "a", {}}, {"U", "q", {}}, {"A", "b", {}}})), "SSystem:sys.TA:a.TU:q.TA:[b.T]");
}

TEST(ChatPrompt, SeveralRolesMayBeMasked) {
  Conversation two = chat({{"U", "q", {}}, {"X", "x", {}}, {"A", "a", {}}, {"X", "y", {}}});
  two.masked_roles = {"U", "X"};
  EXPECT_EQ(marked(two), "SSystem:sys.TU:q.TX:x.TA:[a.T]X:y.");
}

TEST(ChatPrompt, ALabelBeforeTheTextIsGiven) {
  EXPECT_EQ(marked(chat({{"U", "q", {}}, {"A", "a", "good"}}, Type::value_to_text)), "SSystem:sys.TU:q.TA:Lgood:[a.T]");
  EXPECT_EQ(marked(chat({{"U", "q", {}}, {"A", "a", {}}}, Type::value_to_text)), "SSystem:sys.TU:q.TA:[a.T]");
  EXPECT_EQ(marked(chat({{"U", "q", {}}, {"A", "a", "good"}})), "SSystem:sys.TU:q.TA:[a.T]");  // no type: no label
}

TEST(ChatPrompt, ALabelBehindTheTextIsTrainedOnFromTheFirstTurn) {
  EXPECT_EQ(marked(chat({{"A", "a", "good"}, {"U", "q", {}}}, Type::text_to_value)), "SSystem:sys.TA:[a.Lgood:]TU:q.");
  EXPECT_EQ(marked(chat({{"U", "q", "ok"}, {"A", "a", "good"}}, Type::text_to_value)), "SSystem:sys.TU:q.Lok:TA:[a.Lgood:T]");
}

TEST(ChatPrompt, DefaultTokensGiveTheReferencesFormat) {
  const Conversation simple = {.system = "s", .masked_roles = {"User"}, .turns = {{"User", "q", {}}, {"Assistant", "a", {}}}};
  std::string text;
  for (const TextPiece& piece : chat_pieces(simple, {})) text += piece.text;
  EXPECT_EQ(text, std::string("\0", 1) +
                      "System\ns\n\x11User\nq\n\x11"
                      "Assistant\na\n\x11");
}

}  // namespace
}  // namespace kedge
