#pragma once
// The norm of gradients that several ranks hold together. It is summed in one order whatever is sharded: first within leaves, which no
// layout cuts, then over the leaves of the flat buffer.
#include "kedge/model/parameters.h"

namespace kedge {

// The L2 norm of the gradients in own_parts() of all ranks, the same bits on each. Collective.
[[nodiscard]] double gradient_norm(const Parameters& parameters);

// The sum of squares of every leaf of a row of fp32, in fp64; the last one may be shorter.
[[nodiscard]] Tensor leaf_sums(const Tensor& row);

}  // namespace kedge
