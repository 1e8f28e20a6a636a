#pragma once
// Rows of different length made into rectangles of ids, padded on the right. Plain vectors; knows no torch and no data sets'
// files. Lengths travel along: padding is EOS, so they cannot be found by looking for it.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kedge/data/sets/kto_dataset.h"
#include "kedge/data/sets/preference_dataset.h"
#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/data/sets/regression_dataset.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

inline constexpr TokenId kNoLabel = -100;

// Row-major, rows x width.
struct TokenMatrix {
  int64_t rows = 0, width = 0;
  TokenIds ids;

  [[nodiscard]] std::span<const TokenId> row(int64_t index) const {
    return std::span(ids).subspan(static_cast<size_t>(index * width), static_cast<size_t>(width));
  }
};
// Every row must fit the width.
[[nodiscard]] TokenMatrix pad_rows(std::span<const TokenIds> rows, int64_t width, TokenId pad);

struct PromptBatch {
  TokenMatrix text;  // as wide as the longest prompt and max_length more
  std::vector<int64_t> lengths;
};
[[nodiscard]] PromptBatch collate_prompts(std::span<const PromptExample> prompts, int64_t max_length, TokenId eos);

struct SftBatch {
  TokenMatrix tokens, labels;      // labels are the tokens one to the left
  std::vector<uint8_t> loss_mask;  // rows x width; 1 where the label is trained on
  std::vector<int64_t> lengths;    // of inputs, without padding
};
struct SftCollateOptions {
  int64_t max_seq_length = 4096;
  bool pad_to_max_length = false;
  TokenId eos = 0;
};
// As wide as the longest row, rounded up to a multiple of 16, at most max_seq_length.
[[nodiscard]] SftBatch collate_sft(std::span<const MaskedTokens> rows, const SftCollateOptions& options);

// Answers with labels: -100 on the prompt and on padding.
struct LabelledBatch {
  TokenMatrix tokens, labels;
  std::vector<int64_t> lengths;
};
struct PairCollateOptions {
  TokenId eos = 0;
  std::optional<int64_t> width_multiple = std::nullopt;
};
struct PreferenceBatch {
  LabelledBatch chosen, rejected;  // of equal width: the longer of the two
  std::vector<double> chosen_rewards, rejected_rewards;
  std::vector<uint8_t> valid;  // 0: too long or no row at all; teaches nothing
};
// A pair that is null stands for one that is not there (the end of an incomplete validation batch): one EOS a side, not valid.
[[nodiscard]] PreferenceBatch collate_preferences(std::span<const PreferenceExample* const> pairs, const PairCollateOptions& options);

struct KtoBatch {
  LabelledBatch rows;
  LabelledBatch kl;  // prompt i with the answer of row i + 1, the last with that of the first
  std::vector<uint8_t> chosen, valid;
};
[[nodiscard]] KtoBatch collate_kto(std::span<const KtoExample> rows, const PairCollateOptions& options);

struct RegressionBatch {
  TokenMatrix tokens;
  std::vector<int64_t> lengths;
  std::vector<double> labels;  // rows x attributes
};
// The labels of a masked row become `masked_label`; a row that is null stands for one that is not there: one EOS, masked.
[[nodiscard]] RegressionBatch collate_regression(std::span<const RegressionExample* const> rows, int64_t num_attributes,
                                                 double masked_label, TokenId eos);

// The common width of rollout matrices: the widest row anywhere, or more where `rollout_batch_seq_length` asks for it.
struct RolloutWidths {
  int64_t tokens = 0;
  int64_t predictions = 0;  // of values, log-probs and masks: one less
};
[[nodiscard]] RolloutWidths rollout_widths(int64_t widest, std::optional<int64_t> rollout_batch_seq_length);

}  // namespace kedge
