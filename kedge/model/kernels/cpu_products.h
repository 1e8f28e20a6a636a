#pragma once
// Matrix products of the CPU on plain pointers, forward and backward. Every output is one chain of fused multiplications and additions
// along the inner dimension in order, starting at 0; then the extra terms are added. So an output's bits depend only on its own row and
// column: not on other rows, the number of threads, the vector unit or the architecture. Weights are read as they are
// stored: only one block at a time is copied, for the duration of the call. Independent of tensors and threads.
#include <cstdint>
#include <span>

namespace kedge::cpu {

// Vector units with their own kernels; all give the same bits. `plain` is any CPU, slowly.
enum class VectorUnit { avx512, avx2, neon, plain };
// Those of this CPU, the best first.
[[nodiscard]] std::span<const VectorUnit> vector_units();

struct Range {
  int64_t begin, end;

  [[nodiscard]] int64_t size() const { return end - begin; }
};

// Numbers in memory: element (i, j) is at data[i * row + j * column].
template <typename T>
struct MatrixView {
  const T* data;
  int64_t row, column;
};

// out[m][n] = sum over k of a(m, k) b(k, n), + bias[n], + beside[m][n]. T is float, or uint16_t for the bits of bf16: fp32 inside, rounded
// once at the end.
template <typename T>
struct Product {
  MatrixView<T> a, b;
  const T* bias = nullptr;    // [num_columns]
  const T* beside = nullptr;  // as out; may be out itself
  T* out = nullptr;           // [num_rows][num_columns]
  int64_t num_rows = 0, num_columns = 0, depth = 0;
};

// y = x weight^T + bias + beside. x [rows, in], weight [out, in].
template <typename T>
[[nodiscard]] Product<T> forward_product(const T* x, const T* weight, T* y, int64_t rows, int64_t in, int64_t num_out) {
  return {{x, in, 1}, {weight, 1, in}, nullptr, nullptr, y, rows, num_out, in};
}
// dx = dy weight.
[[nodiscard]] inline Product<float> input_gradient(const float* dy, const float* weight, float* dx, int64_t rows, int64_t in,
                                                   int64_t num_out) {
  return {{dy, num_out, 1}, {weight, in, 1}, nullptr, nullptr, dx, rows, in, num_out};
}
// Rows over which a weight's gradient is one chain. The chains of further rows are added to the gradient in order: a chain over thousands
// would lose the last bits of every later term.
constexpr int64_t kGradientRows = 256;
// gradient += dy^T x, of at most kGradientRows rows.
[[nodiscard]] inline Product<float> weight_gradient(const float* dy, const float* x, float* gradient, int64_t rows, int64_t in,
                                                    int64_t num_out) {
  return {{dy, 1, num_out}, {x, in, 1}, nullptr, gradient, gradient, num_out, in, rows};
}

// Computes these rows and columns of the output.
void multiply(VectorUnit unit, const Product<float>& product, Range rows, Range columns);
void multiply(VectorUnit unit, const Product<uint16_t>& product, Range rows, Range columns);

}  // namespace kedge::cpu
