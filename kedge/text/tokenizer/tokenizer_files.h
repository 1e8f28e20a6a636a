#pragma once
// A byte-level tokenizer trained here as the files that `tokenizers`, transformers and load_tokenizer read.
#include <memory>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// Which special token has which role; empty: none.
struct TokenRoles {
  std::string bos = "<bos>";
  std::string eos = "<eos>";
  std::string pad = "<pad>";
};

struct TokenizerFiles {
  Json tokenizer;  // tokenizer.json
  Json config;     // tokenizer_config.json

  // Both into the folder, which is created if missing.
  void write(const Path& folder) const;
  [[nodiscard]] std::unique_ptr<Tokenizer> load() const;
};

// Splits text by GPT-2's expression if `split_words` is set. `vocab` spells bytes as byte_level.h does; `special` tokens are
// marked as such in it, or follow it.
struct ByteLevelParts {
  Json vocab;
  Json merges = Json::Array{};
  std::vector<std::string> special;
  bool split_words = true;
};
[[nodiscard]] TokenizerFiles make_byte_level_files(ByteLevelParts parts, const TokenRoles& roles);

}  // namespace kedge
