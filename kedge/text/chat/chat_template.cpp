#include "kedge/text/chat/chat_template.h"

#include <algorithm>
#include <array>

#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/text/unicode/python_unicode.h"

namespace kedge {
namespace {

constexpr std::array<std::string_view, 3> kReasoningFields = {"reasoning_content", "thinking", "reasoning"};

bool is_reasoning(std::string_view field) {
  return std::find(kReasoningFields.begin(), kReasoningFields.end(), field) != kReasoningFields.end();
}

const Json* find_given(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

// Reasoning comes under three names; transformers hands it on as the first two.
Json with_reasoning_names(const Json& message, std::string_view where) {
  const Json* reasoning = nullptr;
  for (const std::string_view field : kReasoningFields)
    if (reasoning == nullptr) reasoning = find_given(message, field);
  if (reasoning == nullptr) return message;
  Json aliased;
  aliased.set("thinking", *reasoning);
  for (const auto& [key, value] : message.as_object(where)) aliased.set(key, value);
  aliased.set("reasoning_content", *reasoning);
  return aliased;
}

// A special token is text, or an object that holds it as "content".
std::optional<std::string> token_text(const Json& token) {
  const Json* content = token.is_object() ? token.find("content") : &token;
  if (content == nullptr || !content->is_text()) return std::nullopt;
  return content->as_text("special token");
}

void collect_tokens(const Json& config, Json& tokens) {
  if (!config.is_object()) return;
  for (const auto& [key, value] : config.as_object("tokenizer config")) {
    if ((key == "extra_special_tokens" || key == "model_specific_special_tokens") && value.is_object()) {
      for (const auto& [name, token] : value.as_object(key))
        if (const auto text = token_text(token)) tokens.set(name, *text);
    } else if (key.size() > 6 && key.compare(key.size() - 6, 6, "_token") == 0) {
      if (const auto text = token_text(value)) tokens.set(key, *text);
    }
  }
}

std::optional<Json> read_json(const Path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return Json::parse(read_text(path), path.string());
}

}  // namespace

void ChatTemplate::add(std::string_view name, std::string_view text, std::string_view origin) {
  templates_.insert_or_assign(std::string(name), Named{std::string(text), JinjaTemplate::parse(text, origin)});
}

ChatTemplate ChatTemplate::from_text(std::string_view text, std::string_view name, Json special_tokens) {
  ChatTemplate chat;
  chat.origin_ = name;
  chat.add("default", text, name);
  chat.special_tokens_ = std::move(special_tokens);
  return chat;
}

std::optional<ChatTemplate> ChatTemplate::find(const Path& folder) {
  ChatTemplate chat;
  chat.origin_ = folder.string();
  const Path config_path = folder / "tokenizer_config.json", file = folder / "chat_template.jinja",
             more = folder / "additional_chat_templates";
  const Json config = read_json(config_path).value_or(Json());
  collect_tokens(config, chat.special_tokens_);
  if (config.find("added_tokens_decoder") == nullptr)
    if (const auto legacy = read_json(folder / "special_tokens_map.json")) collect_tokens(*legacy, chat.special_tokens_);

  if (std::filesystem::exists(file)) chat.add("default", read_text(file), file.string());
  if (std::filesystem::is_directory(more))
    for (const auto& entry : std::filesystem::directory_iterator(more))
      if (entry.path().extension() == ".jinja") chat.add(entry.path().stem().string(), read_text(entry.path()), entry.path().string());
  if (!chat.templates_.empty()) return chat;

  const std::string where = config_path.string() + ": chat_template";
  if (const Json* found = find_given(config, "chat_template")) {
    if (found->is_text()) {
      chat.add("default", found->as_text(where), where);
    } else {
      for (const Json& one : found->as_array(where)) {
        const std::string& name = one.at("name", where).as_text(where);
        chat.add(name, one.at("template", where).as_text(where), str(where, " ", name));
      }
    }
  } else if (const auto legacy = read_json(folder / "chat_template.json")) {
    const std::string place = (folder / "chat_template.json").string();
    chat.add("default", legacy->at("chat_template", place).as_text(place), place);
  }
  if (chat.templates_.empty()) return std::nullopt;
  return chat;
}

ChatTemplate ChatTemplate::load(const Path& folder) {
  std::optional<ChatTemplate> chat = find(folder);
  check(chat.has_value(), folder.string(), ": no chat template (no chat_template.jinja, and none in tokenizer_config.json)");
  return *std::move(chat);
}

std::string ChatTemplate::fingerprint() const {
  Fingerprint fingerprint;
  for (const auto& [name, named] : templates_) {
    fingerprint.add(name);
    fingerprint.add(named.source);
  }
  return fingerprint.hex();
}

const ChatTemplate::Named& ChatTemplate::choose(const ChatOptions& options) const {
  const bool by_use = options.template_name.empty();
  const std::string name = !by_use                                                        ? options.template_name
                           : !options.tools.is_null() && templates_.count("tool_use") > 0 ? "tool_use"
                                                                                          : "default";
  const auto found = templates_.find(name);
  if (found != templates_.end()) return found->second;
  std::string known;
  for (const auto& [other, named] : templates_) known += (known.empty() ? "" : ", ") + other;
  throw UsageError(str(origin_, ": no chat template named ", name, "; there are: ", known));
}

Json ChatTemplate::context(const Json& messages, const ChatOptions& options) const {
  const std::string where = origin_ + ": messages";
  Json::Array chat;
  for (const Json& message : messages.as_array(where)) {
    static_cast<void>(message.as_object(where));
    chat.push_back(with_reasoning_names(message, where));
  }
  Json context = special_tokens_;
  if (!options.variables.is_null())
    for (const auto& [key, value] : options.variables.as_object(origin_ + ": template variables")) context.set(key, value);
  context.set("messages", std::move(chat));
  context.set("tools", options.tools);
  context.set("documents", options.documents);
  context.set("add_generation_prompt", options.add_generation_prompt);
  return context;
}

std::string ChatTemplate::render(const Json& messages, const ChatOptions& options) const {
  const Named& chosen = choose(options);
  if (!options.continue_field.empty()) return render_open(chosen, messages, options);
  return chosen.compiled.render(context(messages, options), {.now = options.now});
}

JinjaTemplate::Rendered ChatTemplate::render_generated(const Json& messages, const ChatOptions& options) const {
  return choose(options).compiled.render_generated(context(messages, options), {.now = options.now});
}

// As transformers does it: a mark at the end of the last message, and the text up to where the mark came out.
std::string ChatTemplate::render_open(const Named& chosen, const Json& messages, const ChatOptions& options) const {
  static constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";
  const std::string& field = options.continue_field;
  const std::string where = str(origin_, ": continue ", field);
  check(!options.add_generation_prompt, where, ": not together with a generation prompt");
  check(!messages.as_array(where).empty(), where, ": there is no message");
  Json all = context(messages, options);
  Json::Array chat = all.at("messages", where).as_array(where);
  Json& last = chat.back();
  const Json* open = find_given(last, field);
  check(open != nullptr, where, ": the last message has no \"", field, "\" to continue");

  std::vector<std::string> fields;
  if (!is_reasoning(field)) fields.push_back(field);
  for (const std::string_view other : kReasoningFields)
    if (is_reasoning(field) && last.find(other) != nullptr && *last.find(other) == *open) fields.emplace_back(other);
  check(std::any_of(fields.begin(), fields.end(), [&](const std::string& name) { return chosen.source.find(name) != std::string::npos; }),
        where, ": the template does not read this field");

  std::string final_text;
  if (open->is_array()) {
    Json::Array parts = open->as_array(where);
    const auto text = std::find_if(parts.rbegin(), parts.rend(), [](const Json& part) { return part.find("text") != nullptr; });
    check(text != parts.rend(), where, ": the last message has no text to continue");
    final_text = text->at("text", where).as_text(where);
    text->set("text", final_text + std::string(kMark));
    last.set(field, std::move(parts));
  } else {
    final_text = open->as_text(where);
    for (const std::string& name : fields) last.set(name, final_text + std::string(kMark));
  }
  all.set("messages", std::move(chat));

  const std::string text = chosen.compiled.render(all, {.now = options.now});
  const std::string_view bare_mark = kMark.substr(0, kMark.size() - 1);
  const size_t at = text.rfind(bare_mark);
  check(at != std::string::npos && text.find(py_strip(final_text)) != std::string::npos, where,
        ": the template does not write the last message as it is");
  const std::string_view before = std::string_view(text).substr(0, at);
  return std::string(text.compare(at, kMark.size(), kMark) == 0 ? before : py_rstrip(before));
}

}  // namespace kedge
