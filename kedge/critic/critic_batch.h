#pragma once
// What a critic learns from. Independent of torch tensors, so that a client can send it.
#include <cstdint>
#include <vector>

namespace kedge {

// Rows to learn from, all of one width; row-major.
struct CriticBatch {
  int64_t num_rows = 0, width = 0;
  std::vector<int64_t> tokens = {};  // [rows, width]
  std::vector<float> returns = {}, previous = {},
                     mask = {};  // [rows, width - 1]; the target of a token is what follows it; mask 0: not trained on

  friend bool operator==(const CriticBatch&, const CriticBatch&) = default;
};

}  // namespace kedge
