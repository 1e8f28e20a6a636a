#include "kedge/text/chat/chat_prompt.h"

#include <algorithm>

namespace kedge {
namespace {

void append_turn(std::vector<TextPiece>& pieces, const Conversation& chat, size_t number, const ChatPromptTokens& tokens) {
  const Conversation::Turn& turn = chat.turns[number];
  const bool masked = std::find(chat.masked_roles.begin(), chat.masked_roles.end(), turn.from) != chat.masked_roles.end();
  const std::string label = turn.label ? tokens.label_start + *turn.label + tokens.end_of_name : "";
  const bool label_first = chat.type == Conversation::Type::value_to_text;
  const std::string name = turn.from + tokens.end_of_name + (label_first ? label : "");
  const std::string said = turn.value + tokens.end_of_turn + (chat.type == Conversation::Type::text_to_value ? label : "");

  const bool first = number == 0 && chat.type != Conversation::Type::text_to_value;  // context for the rest
  // Whoever speaks next, the answer before it ends with the start of that turn.
  pieces.push_back({tokens.turn_start, masked && number >= 2});
  pieces.push_back({name, false});
  pieces.push_back({said, !masked && !first});
  if (!masked && number + 1 == chat.turns.size()) pieces.push_back({tokens.turn_start, true});
}

}  // namespace

std::vector<TextPiece> chat_pieces(const Conversation& conversation, const ChatPromptTokens& tokens) {
  std::vector<TextPiece> pieces = {
      {tokens.system_turn_start + "System" + tokens.end_of_name + conversation.system + tokens.end_of_turn, false}};
  for (size_t number = 0; number < conversation.turns.size(); ++number) append_turn(pieces, conversation, number, tokens);
  return pieces;
}

}  // namespace kedge
