#include "kedge/data/model_chat.h"

#include <memory>
#include <mutex>
#include <optional>

#include "kedge/data/chat_spans.h"
#include "kedge/data/chat_template.h"

namespace kedge {
namespace {

class ModelChat {
 public:
  explicit ModelChat(Path folder) : folder_(std::move(folder)) {}

  RenderedChat render(const ChatRequest& request) {
    std::call_once(loaded_, [&] { template_ = ChatTemplate::load(folder_); });
    ChatOptions options;
    options.add_generation_prompt = request.add_generation_prompt;
    if (const Json* tools = request.row.find("tools")) options.tools = *tools;
    if (const Json* documents = request.row.find("documents")) options.documents = *documents;
    if (!request.want_loss_spans) return {template_->render(request.messages, options), {}};
    const ChatTurns turns = render_turns(*template_, request.messages, options);
    RenderedChat rendered{turns.text, {}};
    for (const TurnSpan& turn : turns.turns) rendered.loss_spans.push_back({turn.bytes.begin, turn.bytes.end});
    return rendered;
  }

 private:
  Path folder_;
  std::once_flag loaded_;
  std::optional<ChatTemplate> template_;
};

}  // namespace

ChatRenderer chat_of_model(const Path& folder) {
  const auto chat = std::make_shared<ModelChat>(folder);
  return [chat](const ChatRequest& request) { return chat->render(request); };
}

}  // namespace kedge
