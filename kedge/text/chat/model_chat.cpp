#include "kedge/text/chat/model_chat.h"

#include <memory>
#include <mutex>
#include <optional>

#include "kedge/text/chat/chat_spans.h"
#include "kedge/text/chat/chat_template.h"

namespace kedge {
namespace {

class ModelChat {
 public:
  explicit ModelChat(Path folder) : folder_(std::move(folder)) {}

  RenderedChat render(const ChatRequest& request) {
    const ChatTemplate& chat = loaded();
    ChatOptions options;
    options.add_generation_prompt = request.add_generation_prompt;
    if (const Json* tools = request.row.find("tools")) options.tools = *tools;
    if (const Json* documents = request.row.find("documents")) options.documents = *documents;
    if (!request.want_loss_spans) return {chat.render(request.messages, options), {}};
    const ChatTurns turns = render_turns(chat, request.messages, options);
    RenderedChat rendered{turns.text, {}};
    for (const TurnSpan& turn : turns.turns) rendered.loss_spans.push_back({turn.bytes.begin, turn.bytes.end});
    return rendered;
  }

 private:
  // Not by std::call_once: loading may throw, and then the next caller would wait forever if pthread_once does not support exceptions.
  const ChatTemplate& loaded() {
    const std::lock_guard lock(mutex_);
    if (!template_) template_ = ChatTemplate::load(folder_);
    return *template_;
  }

  Path folder_;
  std::mutex mutex_;  // of template_
  std::optional<ChatTemplate> template_;
};

}  // namespace

ChatRenderer chat_of_model(const Path& folder) {
  const auto chat = std::make_shared<ModelChat>(folder);
  return [chat](const ChatRequest& request) { return chat->render(request); };
}

}  // namespace kedge
