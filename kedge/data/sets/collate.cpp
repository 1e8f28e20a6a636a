#include "kedge/data/sets/collate.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr int64_t kSftMultiple = 16;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t length(const TokenIds& ids) { return static_cast<int64_t>(ids.size()); }

int64_t longest(std::span<const TokenIds> rows) {
  int64_t width = 0;
  for (const TokenIds& row : rows) width = std::max(width, length(row));
  return width;
}

std::vector<int64_t> lengths_of(std::span<const TokenIds> rows) {
  std::vector<int64_t> lengths;
  for (const TokenIds& row : rows) lengths.push_back(length(row));
  return lengths;
}

// The ids with -100 in front; all -100 where nothing is to be learnt.
TokenIds labels_of(const TokenIds& ids, int64_t num_prompt_tokens, bool masked) {
  TokenIds labels = ids;
  const int64_t hidden = masked ? length(ids) : std::min(num_prompt_tokens, length(ids));
  std::fill_n(labels.begin(), hidden, kNoLabel);
  return labels;
}

LabelledBatch labelled(std::span<const TokenIds> ids, std::span<const TokenIds> labels, int64_t width, TokenId eos) {
  return {pad_rows(ids, width, eos), pad_rows(labels, width, kNoLabel), lengths_of(ids)};
}

}  // namespace

TokenMatrix pad_rows(std::span<const TokenIds> rows, int64_t width, TokenId pad) {
  TokenMatrix matrix{static_cast<int64_t>(rows.size()), width, TokenIds(rows.size() * static_cast<size_t>(width), pad)};
  auto out = matrix.ids.begin();
  for (const TokenIds& row : rows) {
    ensure(length(row) <= width, "a row of ", row.size(), " tokens in a batch ", width, " wide");
    std::copy(row.begin(), row.end(), out);
    out += width;
  }
  return matrix;
}

PromptBatch collate_prompts(std::span<const PromptExample> prompts, int64_t max_length, TokenId eos) {
  std::vector<TokenIds> rows;
  for (const PromptExample& prompt : prompts) rows.push_back(prompt.ids);
  return {pad_rows(rows, longest(rows) + max_length, eos), lengths_of(rows)};
}

SftBatch collate_sft(std::span<const MaskedTokens> rows, const SftCollateOptions& options) {
  std::vector<TokenIds> inputs, labels;
  for (const MaskedTokens& row : rows) {
    ensure(row.ids.size() == row.mask.size(), row.ids.size(), " tokens and ", row.mask.size(), " masks");
    const size_t count = std::max<size_t>(row.ids.size(), 1) - 1;  // predictions
    inputs.emplace_back(row.ids.begin(), row.ids.begin() + static_cast<std::ptrdiff_t>(count));
    labels.emplace_back(row.ids.end() - static_cast<std::ptrdiff_t>(count), row.ids.end());
  }
  const int64_t width =
      options.pad_to_max_length ? options.max_seq_length : std::min(options.max_seq_length, round_up(longest(inputs), kSftMultiple));
  SftBatch batch{pad_rows(inputs, width, options.eos), pad_rows(labels, width, options.eos), {}, lengths_of(inputs)};
  batch.loss_mask.assign(rows.size() * static_cast<size_t>(width), 0);
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].mask.empty())
      std::copy(rows[i].mask.begin() + 1, rows[i].mask.end(), batch.loss_mask.begin() + static_cast<std::ptrdiff_t>(i) * width);
  return batch;
}

PreferenceBatch collate_preferences(std::span<const PreferenceExample* const> pairs, const PairCollateOptions& options) {
  const PreferenceExample none{.chosen = {options.eos}, .rejected = {options.eos}, .masked = true};
  PreferenceBatch batch;
  std::vector<TokenIds> chosen, rejected, chosen_labels, rejected_labels;
  for (const PreferenceExample* pointer : pairs) {
    const PreferenceExample& pair = pointer == nullptr ? none : *pointer;
    chosen.push_back(pair.chosen);
    rejected.push_back(pair.rejected);
    chosen_labels.push_back(labels_of(pair.chosen, pair.num_prompt_tokens, pair.masked));
    rejected_labels.push_back(labels_of(pair.rejected, pair.num_prompt_tokens, pair.masked));
    batch.chosen_rewards.push_back(pair.chosen_reward);
    batch.rejected_rewards.push_back(pair.rejected_reward);
    batch.valid.push_back(pair.masked ? 0 : 1);
  }
  const int64_t width = round_up(std::max(longest(chosen), longest(rejected)), options.width_multiple.value_or(1));
  batch.chosen = labelled(chosen, chosen_labels, width, options.eos);
  batch.rejected = labelled(rejected, rejected_labels, width, options.eos);
  return batch;
}

KtoBatch collate_kto(std::span<const KtoExample> rows, const PairCollateOptions& options) {
  KtoBatch batch;
  std::vector<TokenIds> ids, labels, kl_ids, kl_labels;
  for (size_t i = 0; i < rows.size(); ++i) {
    const KtoExample& row = rows[i];
    const KtoExample& next = rows[(i + 1) % rows.size()];
    ids.push_back(row.ids);
    labels.push_back(labels_of(row.ids, row.num_prompt_tokens, row.masked));
    const auto prompt_end = row.ids.begin() + std::min(row.num_prompt_tokens, length(row.ids));
    TokenIds mixed(row.ids.begin(), prompt_end);
    mixed.insert(mixed.end(), next.ids.begin() + std::min(next.num_prompt_tokens, length(next.ids)), next.ids.end());
    kl_labels.push_back(labels_of(mixed, prompt_end - row.ids.begin(), row.masked || next.masked));
    kl_ids.push_back(std::move(mixed));
    batch.chosen.push_back(row.chosen ? 1 : 0);
    batch.valid.push_back(row.masked ? 0 : 1);
  }
  const int64_t multiple = options.width_multiple.value_or(1);
  batch.rows = labelled(ids, labels, round_up(longest(ids), multiple), options.eos);
  batch.kl = labelled(kl_ids, kl_labels, round_up(longest(kl_ids), multiple), options.eos);
  return batch;
}

RegressionBatch collate_regression(std::span<const RegressionExample* const> rows, int64_t num_attributes, double masked_label,
                                   TokenId eos) {
  RegressionBatch batch;
  std::vector<TokenIds> ids;
  for (const RegressionExample* row : rows) {
    ids.push_back(row == nullptr ? TokenIds{eos} : row->ids);
    if (row == nullptr || row->masked) {
      batch.labels.insert(batch.labels.end(), static_cast<size_t>(num_attributes), masked_label);
    } else {
      batch.labels.insert(batch.labels.end(), row->labels.begin(), row->labels.end());
    }
  }
  batch.tokens = pad_rows(ids, longest(ids), eos);
  batch.lengths = lengths_of(ids);
  return batch;
}

RolloutWidths rollout_widths(int64_t widest, std::optional<int64_t> rollout_batch_seq_length) {
  const int64_t tokens = std::max(widest, rollout_batch_seq_length.value_or(0));
  return {tokens, tokens - 1};
}

}  // namespace kedge
