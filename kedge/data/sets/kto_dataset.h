#pragma once
// Single answers that are desirable or not, {"prompt", "response", "preference"}, for KTO. Independent of losses.
#include <string>

#include "kedge/core/rare_log.h"
#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct KtoRow {
  PromptResponse texts;
  bool chosen = false;
};

// The layouts are listed in docs/data.md.
class KtoReader {
 public:
  KtoReader(const DataConfig& config, ChatRenderer chat);
  [[nodiscard]] KtoRow read(const Row& row) const;

 private:
  PromptReader reader_;
};

struct KtoExample {
  int64_t id = 0;
  TokenIds ids = {};  // prompt and answer
  int64_t num_prompt_tokens = 0;
  bool chosen = false;
  bool masked = false;  // too long: truncated and masked
};

// Safe to use from several threads.
class KtoDataset {
 public:
  static constexpr int64_t kMaskedTokens = 32;

  // Encodes every row once, so that a broken one is refused at load.
  KtoDataset(Rows rows, TextEncoder encoder, const DataConfig& config, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return kept_.size(); }
  [[nodiscard]] KtoExample get(int64_t index) const;
  [[nodiscard]] int64_t num_masked() const { return masked_.count(); }
  [[nodiscard]] int64_t num_dropped() const { return kept_.num_dropped(); }

 private:
  [[nodiscard]] KtoExample encode(int64_t row) const;

  Rows rows_;
  TextEncoder encoder_;
  DataConfig config_;
  KtoReader reader_;
  KeptRows kept_;
  RareLog masked_;
};

}  // namespace kedge
