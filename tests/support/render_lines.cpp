// Renders one JSON line after another from standard input, for tests that compare with Python:
//   {"template": ..., "context": {...}}                                       a Jinja template
//   {"template": ..., "messages": [...], "tokens": {...}, "options": {...}}   a chat template
// Each gives one line: {"text": ...} or {"error": ...}. A chat also gives "generated": [[begin, end], ...] where the template has
// generation blocks and, with "turns": true, "turns": [[message, begin, end], ...] or why there are none.
#include <iostream>
#include <string>

#include "kedge/core/error.h"
#include "kedge/text/chat/chat_spans.h"

namespace kedge {
namespace {

ChatOptions options_of(const Json& json) {
  ChatOptions options;
  if (const Json* value = json.find("add_generation_prompt")) options.add_generation_prompt = value->as_bool("options");
  if (const Json* value = json.find("tools")) options.tools = *value;
  if (const Json* value = json.find("documents")) options.documents = *value;
  if (const Json* value = json.find("continue")) options.continue_field = value->as_text("options");
  if (const Json* value = json.find("variables")) options.variables = *value;
  std::tm now{};  // Friday, 26 July 2024, 09:05:07
  now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 26, now.tm_wday = 5, now.tm_yday = 207, now.tm_hour = 9, now.tm_min = 5, now.tm_sec = 7;
  options.now = now;
  return options;
}

Json render(const Json& line) {
  const std::string& text = line.at("template", "line").as_text("template");
  Json result;
  if (const Json* context = line.find("context")) {
    result.set("text", JinjaTemplate::parse(text, "template").render(*context));
    return result;
  }
  const Json* tokens = line.find("tokens");
  const ChatTemplate chat = ChatTemplate::from_text(text, "template", tokens == nullptr ? Json(Json::Object{}) : *tokens);
  const Json* given = line.find("options");
  const ChatOptions options = options_of(given == nullptr ? Json() : *given);
  result.set("text", chat.render(line.at("messages", "line"), options));
  if (options.continue_field.empty() && chat.has_generation(options)) {
    Json::Array generated;
    for (const ByteSpan& span : chat.render_generated(line.at("messages", "line"), options).generated)
      generated.push_back(Json::Array{static_cast<int64_t>(span.begin), static_cast<int64_t>(span.end)});
    result.set("generated", std::move(generated));
  }
  if (line.find("turns") != nullptr) {
    try {
      Json::Array turns;
      for (const TurnSpan& turn : render_turns(chat, line.at("messages", "line"), options).turns)
        turns.push_back(Json::Array{turn.message ? Json(static_cast<int64_t>(*turn.message)) : Json(),
                                    static_cast<int64_t>(turn.bytes.begin), static_cast<int64_t>(turn.bytes.end)});
      result.set("turns", std::move(turns));
    } catch (const UsageError& error) {
      result.set("turns", error.what());
    }
  }
  return result;
}

}  // namespace
}  // namespace kedge

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    kedge::Json result;
    try {
      result = kedge::render(kedge::Json::parse(line, "standard input"));
    } catch (const kedge::UsageError& error) {
      result = kedge::Json();
      result.set("error", error.what());
    }
    std::cout << result.dump() << std::endl;
  }
}
