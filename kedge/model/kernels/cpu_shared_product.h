#pragma once
// A product of cpu_products.h on all threads.
#include <algorithm>
#include <functional>
#include <type_traits>

#include <ATen/Parallel.h>

#include "kedge/model/kernels/cpu_matrix_unit.h"
#include "kedge/model/kernels/cpu_products.h"

namespace kedge::cpu {

// The product's rows and columns shared among the threads. Columns first, in full panels: every thread packs its own.
template <typename T>
void run_shared(const Product<T>& product, int64_t num_terms, const std::function<void(Range rows, Range columns)>& work) {
  constexpr int64_t kPanel = 32, kFewRows = 16, kLeastWork = 1 << 16;
  const int64_t num_panels = (product.num_columns + kPanel - 1) / kPanel;
  const int64_t most = std::max<int64_t>(1, product.num_rows * product.num_columns * num_terms / kLeastWork);
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), most), parts = std::min(num_panels, threads);
  const int64_t row_parts = std::clamp<int64_t>(product.num_rows / kFewRows, 1, threads / std::max<int64_t>(1, parts));
  at::parallel_for(0, parts * row_parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % parts, row_part = task / parts;
      const auto column = [&](int64_t p) { return std::min(product.num_columns, num_panels * p / parts * kPanel); };
      const auto row = [&](int64_t p) { return product.num_rows * p / row_parts; };
      work({row(row_part), row(row_part + 1)}, {column(part), column(part + 1)});
    }
  });
}

// The complete product. Forward ones of bf16 are the matrix unit's, if there is one.
template <typename T>
void run_shared(const Product<T>& product) {
  if constexpr (std::is_same_v<T, uint16_t>) {
    if (has_matrix_unit())
      return run_shared<T>(product, product.depth, [&](Range rows, Range columns) { multiply_by_matrix_unit(product, rows, columns); });
  }
  const VectorUnit unit = vector_units()[0];
  run_shared(product, product.depth, [&](Range rows, Range columns) { multiply(unit, product, rows, columns); });
}

}  // namespace kedge::cpu
