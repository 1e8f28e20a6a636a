#pragma once
// The kernels of cpu_products for each vector unit. Only on a CPU that has the unit.
#include "kedge/model/kernels/cpu_products.h"

namespace kedge::cpu {

void multiply_avx512(const Product<float>& product, Range rows, Range columns);
void multiply_avx512(const Product<uint16_t>& product, Range rows, Range columns);
void multiply_avx2(const Product<float>& product, Range rows, Range columns);
void multiply_avx2(const Product<uint16_t>& product, Range rows, Range columns);
void multiply_neon(const Product<float>& product, Range rows, Range columns);
void multiply_neon(const Product<uint16_t>& product, Range rows, Range columns);

}  // namespace kedge::cpu
