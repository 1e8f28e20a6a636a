#include "kedge/model/token_slices.h"

namespace kedge {

Tensor TokenSlices::sum(const Tensor& summands) const {
  if (are_divided) return ranks->sum_rows(summands);
  if (is_split()) ranks->sum_(summands);
  return summands;
}

Tensor TokenSlices::all(const Tensor& own) const { return are_divided ? ranks->gather_rows(own, num_tokens) : own; }

Tensor TokenSlices::own(const Tensor& all) const {
  if (!are_divided) return all;
  const Share share = share_of(num_tokens, ranks->rank(), ranks->size());
  return all.narrow(0, share.begin, share.end - share.begin);
}

}  // namespace kedge
