#pragma once
// Which bytes of a rendered conversation a model would have written: the turns to train on. From a template's {% generation %}
// blocks where it has them, otherwise by rendering the conversation in pieces. Knows no tokens.
#include <optional>
#include <string>
#include <vector>

#include "kedge/text/chat/chat_template.h"

namespace kedge {

struct TurnSpan {
  // Its place among the messages. Unknown where a template has more or fewer generation blocks than there are assistant messages.
  std::optional<size_t> message;
  ByteSpan bytes;  // from behind the header that asks for the turn, to where the next message begins
};

struct ChatTurns {
  std::string text;
  std::vector<TurnSpan> turns;  // of the assistant messages, in order
};

// The text is that of `render` without a generation prompt. A UsageError names the message whose bytes cannot be told.
[[nodiscard]] ChatTurns render_turns(const ChatTemplate& chat, const Json& messages, ChatOptions options = {});

}  // namespace kedge
