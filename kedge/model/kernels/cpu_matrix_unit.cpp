#include "kedge/model/kernels/cpu_matrix_unit.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,amx-tile,amx-bf16"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,amx-tile,amx-bf16")
#endif
#include "kedge/model/kernels/cpu_avx512.h"
#include "kedge/model/kernels/cpu_product_tiles.h"

namespace kedge::cpu {
namespace {

// A tile is 16 rows of 64 bytes: 16 weight rows with 32 terms each, as they are stored; or 16 pairs of terms of 16 rows of x; or 16 by 16
// sums.
constexpr int64_t kSide = 16, kTerms = 32, kLine = 64, kTileNumbers = kSide * kTerms;
// Rows of x that are arranged at a time; they stay in the second cache.
constexpr int64_t kBlockRows = 256;

// Written out, because the compilers' own functions do not say that they read memory.
template <int Tile>
KEDGE_INLINE void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int Tile>
KEDGE_INLINE void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
KEDGE_INLINE void store_tile(void* to) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(kLine), "i"(Tile) : "memory");
}
template <int Sums, int Weights, int Rows>
KEDGE_INLINE void add_products() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Weights), "i"(Rows));
}

// The unit's configuration is the thread's: what was set before, by LibTorch for example, is set again at the end.
class TilesInUse {
 public:
  TilesInUse() {
    Config ours;
    ours.palette = 1;
    for (int64_t tile = 0; tile < 8; ++tile) ours.row_bytes[tile] = kLine, ours.num_rows[tile] = kSide;
    asm volatile("sttilecfg %0" : "=m"(before_));
    asm volatile("ldtilecfg %0" ::"m"(ours));
  }
  ~TilesInUse() {
    if (before_.palette == 0) {
      asm volatile("tilerelease");
    } else {
      asm volatile("ldtilecfg %0" ::"m"(before_));
    }
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;

 private:
  struct alignas(kLine) Config {
    uint8_t palette = 0, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t num_rows[16] = {};
  };
  Config before_;
};

int64_t num_chunks(int64_t depth) { return (depth + kTerms - 1) / kTerms; }

// The rows of a tile from `from` on, zeros where there are none.
void copy_tile(const uint16_t* from, int64_t row, int64_t num_rows, int64_t num_terms, uint16_t* to) {
  std::fill_n(to, kTileNumbers, uint16_t{0});
  for (int64_t r = 0; r < std::min(num_rows, kSide); ++r) std::copy_n(from + r * row, std::min(num_terms, kTerms), to + r * kTerms);
}

// x as tiles: for every 16 rows and 32 terms [pairs of terms][rows].
void arrange(const Product<uint16_t>& product, Range rows, float* tiles) {
  for (int64_t row = rows.begin; row < rows.end; row += kSide)
    for (int64_t k = 0; k < product.depth; k += kTerms, tiles += kSide * kSide) {
      const uint16_t* from = product.a.data + row * product.a.row + k;
      int64_t stride = product.a.row * 2;
      alignas(kLine) uint16_t copied[kTileNumbers];
      if (rows.end - row < kSide || product.depth - k < kTerms) {
        copy_tile(from, product.a.row, rows.end - row, product.depth - k, copied);
        from = copied, stride = kLine;
      }
      avx512::turn_square(reinterpret_cast<const char*>(from), stride, tiles, kSide);
    }
}

// Adds the extra terms to 16 by 16 sums, [weight rows][rows of x], and rounds them.
void finish(const Product<uint16_t>& product, const float* sums, Range rows, Range columns) {
  alignas(kLine) float turned[kSide * kSide];
  avx512::turn_square(reinterpret_cast<const char*>(sums), kLine, turned, kSide);
  const auto which = static_cast<__mmask16>((1U << std::min(columns.size(), kSide)) - 1U);
  const auto load = [&](const uint16_t* p) __attribute__((always_inline)) { return avx512::widen(_mm256_maskz_loadu_epi16(which, p)); };
  for (int64_t r = 0; r < std::min(rows.size(), kSide); ++r) {
    const int64_t at = (rows.begin + r) * product.num_columns + columns.begin;
    __m512 sum = _mm512_load_ps(turned + r * kSide);
    if (product.bias != nullptr) sum = _mm512_add_ps(sum, load(product.bias + columns.begin));
    if (product.beside != nullptr) sum = _mm512_add_ps(sum, load(product.beside + at));
    _mm256_mask_storeu_epi16(product.out + at, which, avx512::round_to_halves(sum));
  }
}

// `Columns` times 16 weight rows with `Rows` times 16 rows of x, of which `tiles` are the first 16; the next ones are `apart` from them.
template <int Columns, int Rows>
void run_tiles(const Product<uint16_t>& product, Range rows, Range columns, const float* tiles, int64_t apart) {
  const int64_t row_bytes = product.b.column * 2;
  const uint16_t* weights[Columns];
  for (int c = 0; c < Columns; ++c) weights[c] = product.b.data + (columns.begin + c * kSide) * product.b.column;
  const auto load_weights = [&]<int C>(int64_t k) __attribute__((always_inline)) {
    const int64_t num_rows = columns.size() - C * kSide, num_terms = product.depth - k;
    if (num_rows >= kSide && num_terms >= kTerms) return load_tile<4 + C>(weights[C] + k, row_bytes);
    alignas(kLine) uint16_t copied[kTileNumbers];
    copy_tile(weights[C] + k, product.b.column, num_rows, num_terms, copied);
    load_tile<4 + C>(copied, kLine);
  };
  // While the sums are computed, the lines that they will be written to come from memory.
  for (int64_t row = rows.begin; row < rows.end; ++row) __builtin_prefetch(product.out + row * product.num_columns + columns.begin, 1);
  clear_tile<0>();
  if constexpr (Rows > 1) clear_tile<1>();
  if constexpr (Columns > 1) clear_tile<2>();
  if constexpr (Columns > 1 && Rows > 1) clear_tile<3>();
  for (int64_t k = 0; k < product.depth; k += kTerms, tiles += kSide * kSide) {
    load_weights.template operator()<0>(k);
    load_tile<6>(tiles, kLine);
    add_products<0, 4, 6>();
    if constexpr (Rows > 1) {
      load_tile<7>(tiles + apart, kLine);
      add_products<1, 4, 7>();
    }
    if constexpr (Columns > 1) {
      load_weights.template operator()<1>(k);
      add_products<2, 5, 6>();
      if constexpr (Rows > 1) add_products<3, 5, 7>();
    }
  }
  alignas(kLine) float sums[kSide * kSide];
  const auto finish_tile = [&]<int C, int R>() __attribute__((always_inline)) {
    store_tile<2 * C + R>(sums);
    finish(product, sums, {rows.begin + R * kSide, rows.end}, {columns.begin + C * kSide, columns.end});
  };
  finish_tile.template operator()<0, 0>();
  if constexpr (Rows > 1) finish_tile.template operator()<0, 1>();
  if constexpr (Columns > 1) finish_tile.template operator()<1, 0>();
  if constexpr (Columns > 1 && Rows > 1) finish_tile.template operator()<1, 1>();
}

void run_tiles(const Product<uint16_t>& product, Range rows, Range columns, const float* tiles, int64_t apart) {
  if (columns.size() > kSide)
    return rows.size() > kSide ? run_tiles<2, 2>(product, rows, columns, tiles, apart)
                               : run_tiles<2, 1>(product, rows, columns, tiles, apart);
  rows.size() > kSide ? run_tiles<1, 2>(product, rows, columns, tiles, apart) : run_tiles<1, 1>(product, rows, columns, tiles, apart);
}

// Linux gives a process the unit's registers when it asks for them (XTILEDATA).
bool may_use_tiles() {
  constexpr int kRequest = 0x1023, kTileData = 18;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kBf16 = 1U << 22U, kTiles = 1U << 24U;
  const bool is_there = (edx & kBf16) != 0 && (edx & kTiles) != 0 && vector_units()[0] == VectorUnit::avx512;
  return is_there && ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

bool has_matrix_unit() {
  static const bool found = may_use_tiles();
  return found;
}

void multiply_by_matrix_unit(const Product<uint16_t>& product, Range rows, Range columns) {
  thread_local LineVector memory;
  const TilesInUse in_use;
  const int64_t apart = num_chunks(product.depth) * kSide * kSide;
  for (int64_t begin = rows.begin; begin < rows.end; begin += kBlockRows) {
    const Range block{begin, std::min(rows.end, begin + kBlockRows)};
    float* tiles = memory.take((block.size() + kSide - 1) / kSide * apart);
    arrange(product, block, tiles);
    for (int64_t column = columns.begin; column < columns.end; column += 2 * kSide)
      for (int64_t row = block.begin; row < block.end; row += 2 * kSide)
        run_tiles(product, {row, std::min(block.end, row + 2 * kSide)}, {column, std::min(columns.end, column + 2 * kSide)},
                  tiles + (row - block.begin) / kSide * apart, apart);
  }
}

}  // namespace kedge::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
#include "kedge/core/error.h"

namespace kedge::cpu {

bool has_matrix_unit() { return false; }

void multiply_by_matrix_unit(const Product<uint16_t>&, Range, Range) { throw Bug("a matrix unit of another CPU"); }

}  // namespace kedge::cpu
#endif
