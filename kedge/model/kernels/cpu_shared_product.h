#pragma once
// A product of cpu_products.h on all threads.
#include <algorithm>
#include <functional>
#include <type_traits>

#include <ATen/Parallel.h>

#include "kedge/model/kernels/cpu_matrix_unit.h"
#include "kedge/model/kernels/cpu_products.h"

namespace kedge::cpu {

constexpr int64_t kPanelColumns = 32;
inline int64_t panels_of(int64_t num_columns) { return (num_columns + kPanelColumns - 1) / kPanelColumns; }

// How many parts of the rows and of the columns threads take.
struct Parts {
  int64_t rows = 1, columns = 1;
};

// As many parts as there are threads, and among these ways the one with the squarest parts: every thread copies the rows and the columns of
// its own.
inline Parts share_out(int64_t num_rows, int64_t num_columns, int64_t threads) {
  constexpr int64_t kFewRows = 16;
  const int64_t most_rows = std::max<int64_t>(1, num_rows / kFewRows), most_columns = panels_of(num_columns);
  const auto copied = [&](Parts parts) { return num_rows * parts.columns + num_columns * parts.rows; };
  Parts best;
  for (int64_t rows = 1; rows <= std::min(threads, most_rows); ++rows) {
    const Parts parts{rows, std::clamp<int64_t>(threads / rows, 1, most_columns)};
    const int64_t gain = parts.rows * parts.columns - best.rows * best.columns;
    if (gain > 0 || (gain == 0 && copied(parts) < copied(best))) best = parts;
  }
  return best;
}

// The product's rows and columns shared among the threads, columns in full panels.
template <typename T>
void run_shared(const Product<T>& product, int64_t num_terms, const std::function<void(Range rows, Range columns)>& work) {
  constexpr int64_t kLeastWork = 1 << 16;
  const int64_t num_panels = panels_of(product.num_columns);
  const int64_t most = std::max<int64_t>(1, product.num_rows * product.num_columns * num_terms / kLeastWork);
  const Parts parts = share_out(product.num_rows, product.num_columns, std::min<int64_t>(at::get_num_threads(), most));
  at::parallel_for(0, parts.rows * parts.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto column = [&](int64_t p) { return std::min(product.num_columns, num_panels * p / parts.columns * kPanelColumns); };
      const auto row = [&](int64_t p) { return product.num_rows * p / parts.rows; };
      const int64_t part = task % parts.columns, row_part = task / parts.columns;
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
