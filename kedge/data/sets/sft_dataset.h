#pragma once
// Prompt-response rows for SFT: a template over a row's fields, encoded piece by piece, with loss on the answer only.
#include <span>
#include <string>
#include <vector>

#include "kedge/data/files/rows.h"
#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_template.h"
#include "kedge/data/sets/sft_config.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

// The rows of `file_path`; `key` is the section's key, "model.data.train_ds".
[[nodiscard]] Rows open_sft_data(const SftFilesConfig& config, std::string_view key);

// A row within its limit, and what was removed.
struct TruncatedTokens {
  MaskedTokens tokens;
  bool truncated = false;
  bool answer_lost = false;  // no token of the answer is left
};

class SftReader {
 public:
  // UsageError for a template that does not end with the label's field, or does not have a field to shorten.
  SftReader(const SftFilesConfig& config, TextEncoder encoder);

  // The template's pieces with the row's values; the last is the answer.
  [[nodiscard]] std::vector<std::string> pieces(const Row& row) const;
  [[nodiscard]] TruncatedTokens encode(std::span<const std::string> pieces) const;
  [[nodiscard]] const TextEncoder& encoder() const { return encoder_; }

 private:
  [[nodiscard]] bool shorten(std::vector<TokenIds>& pieces) const;

  SftFilesConfig config_;
  TextEncoder encoder_;
  PromptTemplate template_;
  std::vector<std::string> truncation_fields_;
  bool adds_blank_;
};

// Takes `excess` tokens away: first from the pieces of which `shortened` is true, in equal shares (the first ones one more where it
// does not divide); the remainder from the pieces in order, from the end (right) or the start (left). Tokens of one piece
// go from the same side.
void truncate_pieces(std::vector<TokenIds>& pieces, const std::vector<bool>& shortened, size_t excess, TruncationSide side);

// Safe to use from several threads.
class SftDataset {
 public:
  // Encodes every row once, so that a broken one is refused at load.
  SftDataset(Rows rows, TextEncoder encoder, const SftFilesConfig& config);

  [[nodiscard]] int64_t size() const { return rows_.size(); }
  [[nodiscard]] MaskedTokens get(int64_t index) const;
  [[nodiscard]] const Truncations& truncations() const { return truncations_; }

 private:
  [[nodiscard]] TruncatedTokens encode(int64_t row) const;

  Rows rows_;
  SftReader reader_;
  Truncations truncations_;
};

}  // namespace kedge
