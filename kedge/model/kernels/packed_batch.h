#pragma once
// Concatenated rows of different lengths: no padding is computed. The one input of every forward pass.
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/core/tensor.h"

namespace kedge {

struct PackedBatch {
  Tensor ids;                    // int64 [tokens]
  Tensor positions;              // int64 [tokens], from 0 in every row
  Tensor offsets;                // int32 [rows + 1]: row r is tokens [offsets[r], offsets[r + 1])
  std::vector<int64_t> lengths;  // of the rows, on the host
  int64_t max_length = 0;

  [[nodiscard]] int64_t num_tokens() const { return ids.size(0); }
  [[nodiscard]] int64_t num_rows() const { return static_cast<int64_t>(lengths.size()); }
};

// Every row has at least one token.
[[nodiscard]] PackedBatch pack_rows(std::span<const std::vector<int32_t>> rows, at::Device device);

// How many of the first rows have at most this many tokens together; at least one. 0: all.
[[nodiscard]] size_t rows_within(std::span<const std::vector<int32_t>> rows, int64_t max_tokens);

// Which tokens are predicted from which places: all but the first of every row, each from the one before it.
struct PredictedTokens {
  Tensor places;   // int64 [predicted]: index of the hidden state; no place twice
  Tensor targets;  // int64 [predicted]: id of the token after it
};
[[nodiscard]] PredictedTokens predicted_tokens(const PackedBatch& batch);

}  // namespace kedge
