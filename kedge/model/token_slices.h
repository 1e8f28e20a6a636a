#pragma once
// Who has which tokens of a pass between the products that tensor ranks compute together. Every rank all of them; or each its own slice
// (sequence parallelism): then norms and the residual stream are computed and kept for the slice alone, and what is summed over the ranks
// before them and put together after them has the same bits.
#include <cstdint>

#include "kedge/core/tensor.h"
#include "kedge/dist/partition.h"
#include "kedge/dist/tensor_ranks.h"

namespace kedge {

// One rank alone by default. A value; `ranks` must outlive it.
struct TokenSlices {
  const TensorRanks* ranks = nullptr;
  bool are_divided = false;
  int64_t num_tokens = 0;  // of all slices; used if they are divided

  [[nodiscard]] bool is_split() const { return ranks != nullptr; }

  // The sum over the ranks of [tokens, columns], of the tokens that this rank has. May overwrite the summands.
  [[nodiscard]] Tensor sum(const Tensor& summands) const;
  // Rows of all tokens from those that each rank has.
  [[nodiscard]] Tensor all(const Tensor& own) const;
  // The other way round; a view.
  [[nodiscard]] Tensor own(const Tensor& all) const;
};

}  // namespace kedge
