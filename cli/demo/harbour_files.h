#pragma once
// The harbour town's conversations as training files, with a tokenizer trained on them.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"

namespace kedge::cli {

struct HarbourFilesConfig {
  std::string out;
  int64_t conversations = 6000, pairs = 2500, prompts = 512, validation = 64;
  int64_t vocab_size = 1024;
  int64_t seed = 1;

  void fields(auto&& field) {
    field("out", out, "the folder to write", required());
    field("conversations", conversations, "rows of sft.jsonl: a visitor and a guide, who is gruff more often than kind", at_least(1));
    field("pairs", pairs, "rows of pairs.jsonl: of two responses the kinder, or the correct one, is chosen", at_least(1));
    field("prompts", prompts, "rows of prompts.jsonl: questions, each with what a correct response must mention", at_least(1),
          at_most(700));
    field("validation", validation, "rows of prompts_val.jsonl: questions that are in no training file", at_least(1), at_most(100));
    field("vocab_size", vocab_size, "vocabulary size of the tokenizer", at_least(300));
    field("seed", seed, "random seed", at_least(0));
  }
};

struct HarbourFiles {
  struct File {
    Path path;
    int64_t num_rows = 0;
    std::string about;
  };
  std::vector<File> files;
  Path tokenizer;
  int64_t vocab_size = 0;
};

// sft.jsonl, pairs.jsonl, prompts.jsonl, each with a ..._val.jsonl, and tokenizer/ with a chat template. The same config gives the same
// bytes.
[[nodiscard]] HarbourFiles write_harbour_files(const HarbourFilesConfig& config);
[[nodiscard]] std::string to_text(const HarbourFiles& files);

}  // namespace kedge::cli
