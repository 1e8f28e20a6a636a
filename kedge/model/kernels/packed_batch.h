#pragma once
// Concatenated rows of different lengths: no padding is computed. The one input of every forward pass.
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/core/tensor.h"

namespace kedge {

// Which rows continue others. The first rows are prompts, the answers to them come next in the same order, then rows that stand alone.
struct SharedPrompts {
  std::vector<int64_t> num_answers;  // by prompt
  Tensor offsets;                    // int32 [prompts + 1]: the tokens of a prompt's answers, counted from the first answer's
  int64_t prompt_tokens = 0, answer_tokens = 0;
  int64_t longest_prompt = 0, longest_answers = 0;  // the latter of all answers to one prompt, end to end
};

struct PackedBatch {
  Tensor ids;                    // int64 [tokens]
  Tensor positions;              // int64 [tokens], from 0 in every row; an answer's follow its prompt's
  Tensor offsets;                // int32 [rows + 1]: row r is tokens [offsets[r], offsets[r + 1])
  std::vector<int64_t> lengths;  // of the rows, on the host; of an answer without its prompt
  int64_t max_length = 0;        // of an answer with its prompt
  SharedPrompts shared = {};

  [[nodiscard]] int64_t num_tokens() const { return ids.size(0); }
  [[nodiscard]] int64_t num_rows() const { return static_cast<int64_t>(lengths.size()); }
  [[nodiscard]] bool shares_prompts() const { return !shared.num_answers.empty(); }
};

// Every row has at least one token.
[[nodiscard]] PackedBatch pack_rows(std::span<const std::vector<int32_t>> rows, at::Device device);

// A row, and those that continue it.
struct RowSpan {
  int64_t start = 0, length = 0;
};
struct RowFamily {
  RowSpan first;
  std::vector<RowSpan> answers = {};
};
[[nodiscard]] std::vector<RowFamily> row_families(const PackedBatch& batch);

// How many of the first rows have at most this many tokens together; at least one. 0: all.
[[nodiscard]] size_t rows_within(std::span<const std::vector<int32_t>> rows, int64_t max_tokens);

// Which tokens are predicted from which places: all but the first of every row, each from the one before it. Of rows
// that continue no others.
struct PredictedTokens {
  Tensor places;   // int64 [predicted]: index of the hidden state; no place twice
  Tensor targets;  // int64 [predicted]: id of the token after it
};
[[nodiscard]] PredictedTokens predicted_tokens(const PackedBatch& batch);

}  // namespace kedge
