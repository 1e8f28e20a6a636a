#pragma once
// Products of bf16 by the matrix unit of x86_64 CPUs (AMX): ten times as fast as their vectors. An output is summed over 32 terms at a
// time, in order, by the unit's own rule, which depends on its own row and column alone; then the extra terms are added, and the sum is
// rounded once. Its bits are not those of cpu_products.h. Independent of tensors and threads.
#include "kedge/model/kernels/cpu_products.h"

namespace kedge::cpu {

// Has this CPU one, and does the system let us use it?
[[nodiscard]] bool has_matrix_unit();

// Computes these rows and columns of a forward product.
void multiply_by_matrix_unit(const Product<uint16_t>& product, Range rows, Range columns);

}  // namespace kedge::cpu
