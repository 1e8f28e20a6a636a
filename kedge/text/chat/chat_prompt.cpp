#include "kedge/text/chat/chat_prompt.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr const char* kAssistant = "Assistant";

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

std::string capitalised(std::string role) {
  if (!role.empty() && role[0] >= 'a' && role[0] <= 'z') role[0] = static_cast<char>(role[0] - 'a' + 'A');
  return role;
}

Conversation conversation_of(const Json::Array& messages) {
  Conversation chat;
  for (const Json& message : messages) {
    const std::string& role = message.at("role", "message").as_text("role");
    const std::string& content = message.at("content", "message").as_text(str(role, "'s content"));
    if (role == "system") {
      check(&message == &messages.front(), "a system message may only come first");
      chat.system = content;
      continue;
    }
    const std::string name = capitalised(role);
    if (name != kAssistant) chat.masked_roles.push_back(name);
    chat.turns.push_back({name, content, std::nullopt});
  }
  return chat;
}

}  // namespace

std::vector<TextPiece> chat_pieces(const Conversation& conversation, const ChatPromptTokens& tokens) {
  std::vector<TextPiece> pieces = {
      {tokens.system_turn_start + "System" + tokens.end_of_name + conversation.system + tokens.end_of_turn, false}};
  for (size_t number = 0; number < conversation.turns.size(); ++number) append_turn(pieces, conversation, number, tokens);
  return pieces;
}

ChatRenderer chat_prompt_renderer(const ChatPromptTokens& tokens) {
  return [tokens](const ChatRequest& request) {
    RenderedChat chat;
    for (const TextPiece& piece : chat_pieces(conversation_of(request.messages.as_array("messages")), tokens)) {
      const size_t begin = chat.text.size();
      chat.text += piece.text;
      if (!request.want_loss_spans || !piece.trained || piece.text.empty()) continue;
      if (!chat.loss_spans.empty() && chat.loss_spans.back().end == begin) {
        chat.loss_spans.back().end = chat.text.size();
      } else {
        chat.loss_spans.push_back({begin, chat.text.size()});
      }
    }
    if (request.add_generation_prompt) chat.text += tokens.turn_start + kAssistant + tokens.end_of_name;
    return chat;
  };
}

}  // namespace kedge
