#pragma once
// Conversations as text, by the chat template of a Hugging Face model folder: the same text as transformers' apply_chat_template.
// Independent of tokens.
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/text/jinja/jinja.h"

namespace kedge {

struct ChatOptions {
  bool add_generation_prompt = false;  // end with the header of the assistant's next turn
  Json tools{};                        // a list of JSON schemas, or null
  Json documents{};                    // a list of objects, or null
  std::string continue_field{};        // leave this field of the last message ("content") open for the model to continue
  Json variables{};                    // an object of more variables for the template; they override special tokens
  std::string template_name{};         // of a folder with several; otherwise "tool_use" when tools are given, or "default"
  std::optional<std::tm> now{};        // the time for strftime_now; without it, the local time
};

class ChatTemplate {
 public:
  // `special_tokens` is an object of names and texts: {"bos_token": "<s>", ...}. `name` opens the errors.
  static ChatTemplate from_text(std::string_view text, std::string_view name, Json special_tokens = Json(Json::Object{}));

  // From chat_template.jinja and additional_chat_templates/, else tokenizer_config.json, else chat_template.json; with the special
  // tokens of tokenizer_config.json. A UsageError if the folder has no chat template.
  static ChatTemplate load(const Path& folder);
  // The same, or none if the folder has no chat template.
  static std::optional<ChatTemplate> find(const Path& folder);

  // `messages` is a list of objects as in Hugging Face: "role", "content" (text or a list of parts) and whatever else the
  // template reads. A UsageError names the template and its line.
  [[nodiscard]] std::string render(const Json& messages, const ChatOptions& options = {}) const;

  // The same, with the passages of {% generation %} blocks; none if the template has no such block.
  [[nodiscard]] JinjaTemplate::Rendered render_generated(const Json& messages, const ChatOptions& options = {}) const;
  // Equal if the templates have the same names and texts.
  [[nodiscard]] std::string fingerprint() const;
  [[nodiscard]] bool has_generation(const ChatOptions& options) const { return choose(options).compiled.has_generation(); }

 private:
  struct Named {
    std::string source;
    JinjaTemplate compiled;
  };

  void add(std::string_view name, std::string_view text, std::string_view origin);
  [[nodiscard]] const Named& choose(const ChatOptions& options) const;
  [[nodiscard]] Json context(const Json& messages, const ChatOptions& options) const;
  [[nodiscard]] std::string render_open(const Named& chosen, const Json& messages, const ChatOptions& options) const;

  std::string origin_;
  std::map<std::string, Named, std::less<>> templates_;
  Json special_tokens_ = Json(Json::Object{});
};

}  // namespace kedge
