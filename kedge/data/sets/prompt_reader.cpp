#include "kedge/data/sets/prompt_reader.h"

#include <algorithm>

namespace kedge {

PromptReader::PromptReader(const DataConfig& config, ChatRenderer chat) : names_(config.names), chat_(std::move(chat)) {
  if (config.prompt_template) template_.emplace(*config.prompt_template, "model.data.prompt_template");
}

std::string PromptReader::prompt_field(const Row& row) const {
  if (names_.prompt) return *names_.prompt;
  for (const char* field : {"text", "prompt", "messages", "conversations"})
    if (row.find(field) != nullptr) return field;
  row.fail_missing("\"text\", \"prompt\" or \"messages\"",
                   "set model.data.fields.prompt to the field with the prompt, or model.data.prompt_template to combine several");
}

bool PromptReader::has_prompt(const Row& row) const {
  return template_ || first_field(row, names_.prompt, {"text", "prompt", "messages", "conversations"}) != nullptr;
}

std::string PromptReader::text(const Row& row) const {
  std::string text;
  if (template_) {
    text = template_->fill(row);
  } else {
    const std::string field = prompt_field(row);
    const Json& value = row.at(field);
    if (value.is_array()) {
      const Json messages = read_messages(row, value, str("\"", field, "\""), names_.roles);
      text = render(chat_, {messages, row.json(), true}, row).text;
    } else if (value.is_text()) {
      text = value.as_text("");
    } else {
      row.fail_type(str("\"", field, "\""), "a string or a list of messages", value);
    }
  }
  if (text.empty()) row.fail(RowFault::empty_prompt, "an empty prompt");
  return text;
}

PromptResponse PromptReader::with_response(const Row& row, const Json& response, std::string_view what) const {
  const std::string field = template_ ? "" : prompt_field(row);
  const bool prompt_is_text = template_ || row.at(field).is_text();
  if (!response.is_text() && !response.is_array() && !response.is_object()) row.fail_type(what, "a string or a list of messages", response);
  if (prompt_is_text && response.is_text()) return {text(row), response.as_text("")};

  Json::Array messages;
  if (prompt_is_text) {
    messages.push_back(Json::Object{{"role", "user"}, {"content", text(row)}});
  } else {
    messages = read_messages(row, row.at(field), str("\"", field, "\""), names_.roles).as_array("");
  }
  if (response.is_text()) {
    messages.push_back(Json::Object{{"role", "assistant"}, {"content", response}});
  } else {
    const Json answer = read_messages(row, response, what, names_.roles);
    if (answer.as_array("").size() != 1)
      row.fail(RowFault::bad_value, str(what, ": expected one message, found ", answer.as_array("").size()));
    messages.push_back(answer.as_array("").front());
  }
  return dialogue(row, messages);
}

PromptResponse PromptReader::whole_dialogue(const Row& row) const {
  const std::string field = prompt_field(row);
  const Json messages = read_messages(row, row.at(field), str("\"", field, "\""), names_.roles);
  if (messages.as_array("").size() < 2)
    row.fail(RowFault::bad_value, str("\"", field, "\": expected a prompt and an answer, found one message"));
  return dialogue(row, messages);
}

PromptResponse PromptReader::dialogue(const Row& row, const Json& messages) const {
  Json::Array opening = messages.as_array("");
  opening.pop_back();
  const Json prompt = std::move(opening);
  PromptResponse texts;
  texts.prompt = render(chat_, {prompt, row.json(), true}, row).text;
  const std::string whole = render(chat_, {messages, row.json(), false}, row).text;
  if (!whole.starts_with(texts.prompt))
    row.fail(RowFault::bad_value, "the chat template renders the prompt differently with and without its answer");
  texts.response = whole.substr(texts.prompt.size());
  if (texts.prompt.empty()) row.fail(RowFault::empty_prompt, "an empty prompt");
  return texts;
}

const Json* first_field(const Row& row, const std::optional<std::string>& name, std::initializer_list<const char*> usual) {
  if (name) return row.find(*name);
  for (const char* field : usual)
    if (const Json* value = row.find(field)) return value;
  return nullptr;
}

TokenIds encode_text(const TextEncoder& encoder, TextEnds ends, std::string_view text) {
  TokenIds ids = encoder.encode(text);
  if (ends.bos && (ids.empty() || ids.front() != encoder.bos_id())) ids.insert(ids.begin(), encoder.bos_id());
  if (ends.eos && !ids.empty()) ids.push_back(encoder.eos_id());
  return ids;
}

JointTokens encode_joint(const TextEncoder& encoder, TextEnds ends, const PromptResponse& texts,
                         const std::function<std::string()>& where) {
  const TokenIds prompt = encode_text(encoder, {.bos = ends.bos}, texts.prompt);
  JointTokens joint{encode_text(encoder, ends, texts.prompt + texts.response), static_cast<int64_t>(prompt.size())};
  const auto common = std::mismatch(prompt.begin(), prompt.end(), joint.ids.begin(), joint.ids.end()).first - prompt.begin();
  if (common < joint.num_prompt_tokens && ends.boundary == PromptBoundary::exact)
    throw RowError(RowFault::bad_value, str(where(),
                                            ": the prompt's tokens change when the answer follows; move the boundary between prompt and "
                                            "answer, for example by putting the blank at the start of the answer, or set "
                                            "model.data.prompt_boundary=common: the answer then begins at the first token that changes"));
  joint.num_prompt_tokens = common;
  return joint;
}

}  // namespace kedge
