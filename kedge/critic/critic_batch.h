#pragma once
// What a critic learns from. Knows no tensors of torch's, so that a client can send it.
#include <cstdint>
#include <vector>

namespace kedge {

// Rows to learn from, all of one width; row-major.
struct CriticBatch {
  int64_t num_rows = 0, width = 0;
  std::vector<int64_t> tokens = {};                           // [rows, width]
  std::vector<float> returns = {}, previous = {}, mask = {};  // [rows, width - 1]; what follows a token belongs to it; mask 0: not learned

  friend bool operator==(const CriticBatch&, const CriticBatch&) = default;
};

}  // namespace kedge
