#pragma once
// Prompts for the online trainers: a row's text or messages, as ids, together with the complete row. Independent of what
// is generated or rewarded.
#include <string>

#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct PromptExample {
  int64_t id = 0;      // the requested index: identifies the prompt
  int64_t source = 0;  // the row it came from: another if that one is too long
  std::string text = {};
  TokenIds ids = {};
  Json row = {};  // unchanged, so that rewards see answers and labels
};

// Safe to use from several threads.
class PromptDataset {
 public:
  // Encodes every row once, so that a broken one is refused at load. Too long is what has more than `max_tokens` ids.
  PromptDataset(Rows rows, TextEncoder encoder, const DataConfig& config, int64_t max_tokens, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return kept_.size(); }
  [[nodiscard]] PromptExample get(int64_t index) const;
  [[nodiscard]] int64_t num_replaced() const { return replacements_.count(); }
  [[nodiscard]] int64_t num_dropped() const { return kept_.num_dropped(); }

 private:
  [[nodiscard]] std::optional<PromptExample> read(int64_t row) const;

  Rows rows_;
  TextEncoder encoder_;
  DataConfig config_;
  int64_t max_tokens_;
  PromptReader reader_;
  KeptRows kept_;
  Replacements replacements_;
};

}  // namespace kedge
