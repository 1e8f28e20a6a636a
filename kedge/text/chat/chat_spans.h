#pragma once
// Which bytes of a rendered conversation a model would have written: the turns to train on. From a template's {% generation %}
// blocks if it has them, otherwise by rendering the conversation in pieces. Independent of tokens.
#include <optional>
#include <string>
#include <vector>

#include "kedge/text/chat/chat_template.h"

namespace kedge {

struct TurnSpan {
  // Its place among the messages. Unknown if a template has more or fewer generation blocks than there are assistant messages.
  std::optional<size_t> message;
  ByteSpan bytes;  // from the end of the turn's header to the start of the next message
};

struct ChatTurns {
  std::string text;
  std::vector<TurnSpan> turns;  // of the assistant messages, in order
};

// The text is that of `render` without a generation prompt. A UsageError names the message whose bytes cannot be determined.
[[nodiscard]] ChatTurns render_turns(const ChatTemplate& chat, const Json& messages, ChatOptions options = {});

}  // namespace kedge
