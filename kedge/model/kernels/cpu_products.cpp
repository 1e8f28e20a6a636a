#include "kedge/model/kernels/cpu_products.h"

#include <bit>
#include <cstdlib>
#include <new>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_product_tiles.h"
#include "kedge/model/kernels/cpu_products_units.h"

namespace kedge::cpu {
namespace {

// One number at a time. Where the CPU cannot fuse, the library computes what a CPU that can would.
struct Plain {
  using Vector = float;
  static constexpr int64_t kWidth = 1, kRows = 4, kVectors = 4;

  static Vector zero() { return 0.0F; }
  static Vector load(const float* p) { return *p; }
  static Vector load(const uint16_t* p) { return widen(*p); }
  static void store(float* p, Vector x) { *p = x; }
  static void store(uint16_t* p, Vector x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    *p = static_cast<uint16_t>(x == x ? (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U : 0x7FC0U);
  }
  static float widen(float x) { return x; }
  static float widen(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16U); }
  static Vector broadcast(const float* p) { return *p; }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector fused(Vector a, Vector b, Vector c) { return __builtin_fmaf(a, b, c); }
  template <typename T>
  static void turn(const T* from, int64_t, float* to, int64_t) {
    *to = widen(*from);
  }
  template <int64_t Rows, int64_t Vectors, bool AlongRows>
  static void add_products(const TileTask& task, Vector (&sum)[Rows][Vectors]) {
    add_by_broadcast<Plain, Rows, Vectors, AlongRows>(task, sum);
  }
};

std::vector<VectorUnit> units_here() {
  std::vector<VectorUnit> units;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    units.push_back(VectorUnit::avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) units.push_back(VectorUnit::avx2);
#elif defined(__aarch64__)
  units.push_back(VectorUnit::neon);
#endif
  units.push_back(VectorUnit::plain);
  return units;
}

template <typename T>
void multiply_with(VectorUnit unit, const Product<T>& product, Range rows, Range columns) {
  switch (unit) {
#if defined(__x86_64__)
    case VectorUnit::avx512:
      return multiply_avx512(product, rows, columns);
    case VectorUnit::avx2:
      return multiply_avx2(product, rows, columns);
#elif defined(__aarch64__)
    case VectorUnit::neon:
      return multiply_neon(product, rows, columns);
#endif
    case VectorUnit::plain:
      return Tiles<Plain, T>::multiply(product, rows, columns);
    default:
      throw Bug("a vector unit of another architecture");
  }
}

}  // namespace

LineVector::~LineVector() { std::free(data_); }

float* LineVector::take(int64_t count) {
  if (count > size_) {
    constexpr int64_t kLine = 16;
    const int64_t size = (count + kLine - 1) / kLine * kLine;
    std::free(data_);
    data_ = static_cast<float*>(std::aligned_alloc(kLine * sizeof(float), static_cast<size_t>(size) * sizeof(float)));
    size_ = data_ == nullptr ? 0 : size;
    if (data_ == nullptr) throw std::bad_alloc();
  }
  return data_;
}

std::span<const VectorUnit> vector_units() {
  static const std::vector<VectorUnit> units = units_here();
  return units;
}

void multiply(VectorUnit unit, const Product<float>& product, Range rows, Range columns) { multiply_with(unit, product, rows, columns); }
void multiply(VectorUnit unit, const Product<uint16_t>& product, Range rows, Range columns) { multiply_with(unit, product, rows, columns); }

}  // namespace kedge::cpu
