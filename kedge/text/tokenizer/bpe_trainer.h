#pragma once
// Learns a byte-level BPE tokenizer from text: repeatedly, the most frequent pair of neighbours becomes a token. The
// same texts always give the same tokenizer, and the one `tokenizers` would learn.
#include <span>
#include <string>
#include <vector>

#include "kedge/text/tokenizer/tokenizer_files.h"

namespace kedge {

struct BpeTraining {
  int64_t vocab_size = 4096;                                              // special tokens and the 256 bytes included
  int64_t min_count = 2;                                                  // pairs seen less often are not merged
  std::vector<std::string> special_tokens = {"<pad>", "<bos>", "<eos>"};  // the first ids
  TokenRoles roles = {};
};

// The texts must be UTF-8. Words are those of GPT-2's expression. The vocabulary may be smaller than requested.
[[nodiscard]] TokenizerFiles train_bpe(std::span<const std::string> texts, const BpeTraining& training);

}  // namespace kedge
