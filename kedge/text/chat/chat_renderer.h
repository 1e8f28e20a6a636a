#pragma once
// The interface of chat templates: a function from messages to text. model_chat.h creates one from a model folder's own template.
#include <functional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/core/text_span.h"

namespace kedge {

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> loss_spans;  // if requested: the assistant's texts, in order, separately; they are trained on
};

struct ChatRequest {
  const Json& messages;                // [{"role", "content", ...}, ...]
  const Json& row;                     // the complete row, for templates that read more of it ("tools")
  bool add_generation_prompt = false;  // end with the opening of the assistant's turn
  bool want_loss_spans = false;
};

// Called from several threads. What it cannot render is a UsageError.
using ChatRenderer = std::function<RenderedChat(const ChatRequest&)>;

}  // namespace kedge
