#pragma once
// Prompts and answers of rows as text, whatever the layout: strings, messages, or a template over fields. Uses no tokenizer
// except for the ids of the two together.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/data/sets/data_config.h"
#include "kedge/data/sets/prompt_template.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

struct PromptResponse {
  std::string prompt, response;  // one text when put together
};

class PromptReader {
 public:
  PromptReader(const DataConfig& config, ChatRenderer chat);

  // The row's prompt: its template filled in, the named field, or the first of text, prompt, messages and conversations.
  // Messages are rendered up to the opening of the assistant's turn. An empty prompt is a RowError.
  [[nodiscard]] std::string text(const Row& row) const;
  // Does the row have a prompt in addition to its answers?
  [[nodiscard]] bool has_prompt(const Row& row) const;

  // The row's prompt and an answer to it, a string or a message; `what` names the answer in errors. Strings are put together as
  // they are; if one is a message, both are rendered.
  [[nodiscard]] PromptResponse with_response(const Row& row, const Json& response, std::string_view what) const;
  // Messages of which the last is the answer.
  [[nodiscard]] PromptResponse dialogue(const Row& row, const Json& messages) const;
  // The row's prompt field as messages of which the last is the answer.
  [[nodiscard]] PromptResponse whole_dialogue(const Row& row) const;

  [[nodiscard]] const FieldNames& names() const { return names_; }

 private:
  [[nodiscard]] std::string prompt_field(const Row& row) const;

  FieldNames names_;
  std::optional<PromptTemplate> template_;
  ChatRenderer chat_;
};

// The field of that name, or of the first of the usual ones that exists; null if there is none.
[[nodiscard]] const Json* first_field(const Row& row, const std::optional<std::string>& name, std::initializer_list<const char*> usual);

// Ids around a text's own ids.
struct TextEnds {
  bool bos = false;  // unless the text already has it
  bool eos = false;
  PromptBoundary boundary = PromptBoundary::exact;  // within it, of a prompt and its answer
};
[[nodiscard]] inline TextEnds ends_of(const DataConfig& config) { return {config.add_bos, config.append_eod, config.prompt_boundary}; }
// Text without ids stays so, but for BOS.
[[nodiscard]] TokenIds encode_text(const TextEncoder& encoder, TextEnds ends, std::string_view text);

// Prompt and answer as one text.
struct JointTokens {
  TokenIds ids;
  int64_t num_prompt_tokens = 0;
};
// If the prompt's own ids are not the first of the joint ones, the boundary decides: a RowError, or the prompt ends where they differ.
// `where` returns file and line.
[[nodiscard]] JointTokens encode_joint(const TextEncoder& encoder, TextEnds ends, const PromptResponse& texts,
                                       const std::function<std::string()>& where);

}  // namespace kedge
