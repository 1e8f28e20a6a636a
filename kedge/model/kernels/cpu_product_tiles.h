#pragma once
// The loops of cpu_products, for any vector unit: a source includes this after it has enabled instructions for the compiler.
// `Unit` has vectors of kWidth numbers and the few operations on them; a tile is kRows by kVectors vectors of sums in registers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_products.h"

namespace kedge::cpu {

// A tile's work: sums over `depth` terms for some rows of a and the columns of a panel.
struct TileTask {
  const float* a;  // element (m, k) at a[m * a_row + k], or in groups at a[k * kGroup + m]
  int64_t a_row;
  const float* panel;  // [depth][columns of a panel]
  int64_t depth;
  float* out;  // the sums, `out_row` apart
  int64_t out_row;
  bool goes_on;  // start from the existing sums
  // Rows of b that the next panel takes, to be fetched from memory meanwhile: `num_fetched` of them, `fetch_row` bytes apart.
  const char* fetch;
  int64_t fetch_row, num_fetched, term_bytes;
};

// Fetches what four terms from `term` on are a part of. Calls for every fourth term fetch each cache line once.
KEDGE_INLINE void fetch_ahead(const TileTask& task, int64_t term) {
  const int64_t turns = 16 / task.term_bytes;  // calls that would fetch the same lines
  for (int64_t row = term / 4 & (turns - 1); row < task.num_fetched; row += turns)
    __builtin_prefetch(task.fetch + row * task.fetch_row + term * task.term_bytes);
}

// Rows of a tile, as they are copied.
template <typename Unit>
constexpr int64_t kGroupOf = (Unit::kRows + 3) / 4 * 4;

template <typename Unit, int64_t Rows, int64_t Vectors, bool AlongRows>
void run_tile(const TileTask& task) {
  typename Unit::Vector sum[Rows][Vectors];
#pragma GCC unroll 16  // so that the sums stay in registers
  for (int64_t m = 0; m < Rows; ++m)
    for (int64_t v = 0; v < Vectors; ++v)
      sum[m][v] = task.goes_on ? Unit::load(task.out + m * task.out_row + v * Unit::kWidth) : Unit::zero();
  Unit::template add_products<Rows, Vectors, AlongRows>(task, sum);
#pragma GCC unroll 16
  for (int64_t m = 0; m < Rows; ++m)
    for (int64_t v = 0; v < Vectors; ++v) Unit::store(task.out + m * task.out_row + v * Unit::kWidth, sum[m][v]);
}

using Tile = void (*)(const TileTask&);
// The tile of this many rows.
template <typename Unit, int64_t Vectors, bool AlongRows>
Tile tile_of(int64_t rows) {
  return [&]<int64_t... M>(std::integer_sequence<int64_t, M...>) {
    static constexpr Tile kTiles[] = {run_tile<Unit, M + 1, Vectors, AlongRows>...};
    return kTiles[rows - 1];
  }
  (std::make_integer_sequence<int64_t, Unit::kRows>{});
}
template <typename Unit>
Tile tile_of(int64_t rows, bool is_narrow, bool along_rows) {
  if (is_narrow) return along_rows ? tile_of<Unit, 1, true>(rows) : tile_of<Unit, 1, false>(rows);
  return along_rows ? tile_of<Unit, Unit::kVectors, true>(rows) : tile_of<Unit, Unit::kVectors, false>(rows);
}

// Scratch memory, valid until the next use. Aligned to cache lines: a vector across two takes twice as long to load. Its functions are
// compiled in cpu_products.cpp, for any CPU: of several copies the linker would keep one, perhaps one for a unit that this CPU lacks.
class LineVector {
 public:
  LineVector() = default;
  ~LineVector();
  LineVector(const LineVector&) = delete;
  LineVector& operator=(const LineVector&) = delete;

  float* take(int64_t count);

 private:
  float* data_ = nullptr;
  int64_t size_ = 0;
};

// Where the numbers of a block are.
struct Block {
  Range rows, columns, terms;
};

template <typename Unit, typename T>
struct Tiles {
  static constexpr int64_t kWidth = Unit::kWidth;
  static constexpr int64_t kPanel = Unit::kVectors * kWidth;  // columns of a panel
  static constexpr int64_t kGroup = kGroupOf<Unit>;
  // A block of a is read again for every panel and stays in the second cache; a panel is read again for every tile.
  static constexpr int64_t kBlockRows = 384, kBlockTerms = 256, kBlockColumns = 1024;
  // Rows this far apart map to the same few sets of the first cache.
  static constexpr int64_t kSamePlace = 512;
  static constexpr int64_t kTilesToFetchIn = 3;  // fewer end before the lines are there
  static constexpr int64_t kRowsAhead = 6;       // parts of rows, which the CPU would not fetch by itself
  static constexpr int64_t kLine = 64 / sizeof(T);

  // The sums of a block as they are computed: in the output itself if nothing is added to them.
  struct Sums {
    float* data;  // null if a tile's own are enough
    int64_t row;
    bool are_output = false;
  };

  // b's numbers of these terms and columns, [terms][kPanel], zeros after the last column. `fetch_next`: the next panel's come from memory
  // meanwhile.
  static void fill_panel(const MatrixView<T>& b, Range terms, Range columns, float* panel, bool fetch_next) {
    const int64_t count = columns.size(), depth = terms.size();
    if (b.column == 1) {
      const T* from = b.data + terms.begin * b.row + columns.begin;
      for (int64_t k = 0; k < depth; ++k, from += b.row, panel += kPanel) {
        for (int64_t i = 0; i < kPanel; i += kLine) __builtin_prefetch(from + kRowsAhead * b.row + i);
        if (count == kPanel) {
          for (int64_t i = 0; i < kPanel; i += kWidth) Unit::store(panel + i, Unit::load(from + i));
        } else {
          for (int64_t i = 0; i < kPanel; ++i) panel[i] = i < count ? Unit::widen(from[i]) : 0.0F;
        }
      }
      return;
    }
    for (int64_t i = 0; i < kPanel; i += kWidth) {
      const T* from = b.data + terms.begin + (columns.begin + i) * b.column;
      const int64_t whole = count - i >= kWidth ? depth / kWidth * kWidth : 0;
      for (int64_t k = 0; k < whole; k += kWidth) {
        if (fetch_next)
          for (int64_t j = 0; j < kWidth; ++j) __builtin_prefetch(from + (kPanel + j) * b.column + k);
        Unit::turn(from + k, b.column, panel + k * kPanel + i, kPanel);
      }
      for (int64_t k = whole; k < depth; ++k)
        for (int64_t j = 0; j < kWidth; ++j) panel[k * kPanel + i + j] = i + j < count ? Unit::widen(from[j * b.column + k]) : 0.0F;
    }
  }

  // Rows are shared evenly among tiles: a last one of few rows would wait for its own sums. Worked out once a block, because dividing takes
  // as long as copying a group.
  class Split {
   public:
    explicit Split(int64_t count) : rows(count), num_tiles((count + Unit::kRows - 1) / Unit::kRows) {
      for (int64_t tile = 0; tile <= num_tiles; ++tile) begins_[static_cast<size_t>(tile)] = rows * tile / num_tiles;
    }
    [[nodiscard]] int64_t begin(int64_t tile) const { return begins_[static_cast<size_t>(tile)]; }

    const int64_t rows, num_tiles;

   private:
    std::array<int64_t, kBlockRows / Unit::kRows + 2> begins_;
  };

  // A block of a as tiles read it: in rows, or for every tile [terms][kGroup], so that a term's numbers lie in one cache line.
  struct Arranged {
    const float* data;
    int64_t row;    // apart; 1 in groups
    int64_t group;  // numbers of a tile's group; 0 in rows

    [[nodiscard]] bool is_rows() const { return group == 0; }
    [[nodiscard]] const float* tile(int64_t t, const Split& split) const {
      const int64_t begin = split.begin(t);
      return is_rows() ? data + begin * row : data + t * group + begin - group_begin(begin, split.rows);
    }
  };
  // The last group starts early enough to be complete.
  static int64_t group_begin(int64_t row, int64_t num_rows) { return std::max<int64_t>(0, std::min(row, num_rows - kGroup)); }

  static Arranged arrange(const MatrixView<T>& a, const Block& block, const Split& split, LineVector& memory) {
    if (a.row == 1 && a.column != 1) return copy_groups(a, block, split, memory);
    // Groups are worth their copy if they are read repeatedly.
    constexpr int64_t kWorthIt = 3 * kPanel;
    if (block.rows.size() >= kGroup && block.columns.size() >= kWorthIt) return turn_groups(a, block, split, memory);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (a.row % kSamePlace != 0) return {a.data + block.rows.begin * a.row + block.terms.begin, a.row, 0};
    }
    return copy_rows(a, block, memory);
  }
  static Arranged copy_rows(const MatrixView<T>& a, const Block& block, LineVector& memory) {
    constexpr int64_t kApart = 16;
    const int64_t depth = block.terms.size(), stride = (depth / kApart + 1) * kApart + kApart;
    float* copied = memory.take(block.rows.size() * stride);
    for (int64_t m = 0; m < block.rows.size(); ++m) {
      const T* from = a.data + (block.rows.begin + m) * a.row + block.terms.begin;
      float* to = copied + m * stride;
      int64_t k = 0;
      for (; k + kWidth <= depth; k += kWidth) Unit::store(to + k, Unit::load(from + k));
      for (; k < depth; ++k) to[k] = Unit::widen(from[k]);
    }
    return {copied, stride, 0};
  }
  static Arranged turn_groups(const MatrixView<T>& a, const Block& block, const Split& split, LineVector& memory) {
    const int64_t depth = block.terms.size(), whole = depth / kWidth * kWidth;
    float* copied = memory.take(split.num_tiles * depth * kGroup);
    for (int64_t t = 0; t < split.num_tiles; ++t) {
      const T* from = a.data + (block.rows.begin + group_begin(split.begin(t), split.rows)) * a.row + block.terms.begin;
      float* to = copied + t * depth * kGroup;
      for (int64_t m = 0; m < kGroup; m += kWidth)
        for (int64_t k = 0; k < whole; k += kWidth) Unit::turn(from + m * a.row + k, a.row, to + k * kGroup + m, kGroup);
      for (int64_t k = whole; k < depth; ++k)
        for (int64_t m = 0; m < kGroup; ++m) to[k * kGroup + m] = Unit::widen(from[m * a.row + k]);
    }
    return {copied, 1, depth * kGroup};
  }
  // Of a matrix whose columns lie side by side.
  static Arranged copy_groups(const MatrixView<T>& a, const Block& block, const Split& split, LineVector& memory) {
    const int64_t depth = block.terms.size(), count = std::min(kGroup, split.rows);
    float* copied = memory.take(split.num_tiles * depth * kGroup);
    for (int64_t k = 0; k < depth; ++k) {
      const T* from = a.data + (block.terms.begin + k) * a.column + block.rows.begin;
      for (int64_t t = 0; t < split.num_tiles; ++t) {
        const int64_t begin = group_begin(split.begin(t), split.rows);
        float* to = copied + (t * depth + k) * kGroup;
        __builtin_prefetch(from + kRowsAhead * a.column + begin);
        if (count == kGroup) {
          for (int64_t m = 0; m < kGroup; m += kWidth) Unit::store(to + m, Unit::load(from + begin + m));
        } else {
          for (int64_t m = 0; m < kGroup; ++m) to[m] = m < count ? Unit::widen(from[m]) : 0.0F;
        }
      }
    }
    return {copied, 1, depth * kGroup};
  }

  // Adds the extra terms to a tile's sums and rounds them. Rows of sums end with room for a full panel; those of the output do not.
  static void finish(const Product<T>& product, Range rows, Range columns, const Sums& sums) {
    const int64_t whole = columns.begin + columns.size() / kWidth * kWidth;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const float* from = sums.data + (row - rows.begin) * sums.row;
      const int64_t at = row * product.num_columns;
      int64_t column = columns.begin;
      for (; column < whole; column += kWidth, from += kWidth) {
        auto sum = Unit::load(from);
        if (product.bias != nullptr) sum = Unit::add(sum, Unit::load(product.bias + column));
        if (product.beside != nullptr) sum = Unit::add(sum, Unit::load(product.beside + at + column));
        Unit::store(product.out + at + column, sum);
      }
      if (column < columns.end) finish_last(product, at, {column, columns.end}, from);
    }
  }
  // Less than a vector.
  static void finish_last(const Product<T>& product, int64_t at, Range columns, const float* from) {
    auto sum = Unit::load(from);
    T some[kWidth] = {};
    const auto add = [&](const T* terms) __attribute__((always_inline)) {
      std::copy_n(terms, columns.size(), some);
      sum = Unit::add(sum, Unit::load(some));
    };
    if (product.bias != nullptr) add(product.bias + columns.begin);
    if (product.beside != nullptr) add(product.beside + at + columns.begin);
    Unit::store(some, sum);
    std::copy_n(some, columns.size(), product.out + at + columns.begin);
  }

  // While a tile is computed, the lines that it will be written to come from memory.
  static void fetch_output(const Product<T>& product, Range rows, Range columns) {
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = columns.begin; column < columns.end; column += kLine)
        __builtin_prefetch(product.out + row * product.num_columns + column, 1);
  }

  static void multiply_block(const Product<T>& product, const Block& block, const Sums& sums) {
    thread_local LineVector memory, panel_memory;
    alignas(64) float tile_sums[Unit::kRows * kPanel];
    const int64_t depth = block.terms.size();
    const bool is_last = block.terms.end == product.depth;
    const Split split(block.rows.size());
    const Arranged a = arrange(product.a, block, split, memory);
    float* panel = panel_memory.take(depth * kPanel);
    // Weights come from memory: with few tiles while a panel is filled, else while tiles are computed.
    const bool is_from_memory = product.b.column != 1, fetch_in_tiles = is_from_memory && split.num_tiles >= kTilesToFetchIn;
    const int64_t next_per_tile = (kPanel + split.num_tiles - 1) / split.num_tiles;
    for (int64_t column = block.columns.begin; column < block.columns.end; column += kPanel) {
      const Range columns{column, std::min(block.columns.end, column + kPanel)};
      const bool has_next = columns.end < block.columns.end;
      const int64_t num_next = fetch_in_tiles && has_next ? std::min(kPanel, block.columns.end - columns.end) : 0;
      fill_panel(product.b, block.terms, columns, panel, is_from_memory && has_next && !fetch_in_tiles);
      for (int64_t t = 0; t < split.num_tiles; ++t) {
        const Range rows{split.begin(t), split.begin(t + 1)};
        const Sums own = sums.data == nullptr ? Sums{tile_sums, kPanel}
                                              : Sums{sums.data + rows.begin * sums.row + column - block.columns.begin, sums.row};
        if (is_last) fetch_output(product, {block.rows.begin + rows.begin, block.rows.begin + rows.end}, columns);
        const int64_t first_next = std::min(num_next, t * next_per_tile);
        const T* fetch = product.b.data + block.terms.begin + (columns.end + first_next) * product.b.column;
        const TileTask task{a.tile(t, split),
                            a.row,
                            panel,
                            depth,
                            own.data,
                            own.row,
                            block.terms.begin > 0,
                            reinterpret_cast<const char*>(fetch),
                            product.b.column * static_cast<int64_t>(sizeof(T)),
                            std::min(num_next - first_next, next_per_tile),
                            sizeof(T)};
        tile_of<Unit>(rows.size(), columns.size() <= kWidth, a.is_rows())(task);
        if (is_last && !sums.are_output) finish(product, {block.rows.begin + rows.begin, block.rows.begin + rows.end}, columns, own);
      }
    }
  }

  static Sums sums_of(const Product<T>& product, const Block& block, LineVector& memory) {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (product.bias == nullptr && product.beside == nullptr && block.columns.size() % kPanel == 0)
        return {product.out + block.rows.begin * product.num_columns + block.columns.begin, product.num_columns, true};
    }
    if (product.depth <= kBlockTerms) return {nullptr, 0, false};
    const int64_t width = (block.columns.size() + kPanel - 1) / kPanel * kPanel;
    return {memory.take(block.rows.size() * width), width, false};
  }

  static void multiply(const Product<T>& product, Range rows, Range columns) {
    thread_local LineVector memory;
    const int64_t num_blocks = std::max<int64_t>(1, (product.depth + kBlockTerms - 1) / kBlockTerms);
    const int64_t block_terms = ((product.depth + num_blocks - 1) / num_blocks + 15) / 16 * 16;
    for (int64_t column = columns.begin; column < columns.end; column += kBlockColumns)
      for (int64_t row = rows.begin; row < rows.end; row += kBlockRows) {
        Block block{{row, std::min(rows.end, row + kBlockRows)}, {column, std::min(columns.end, column + kBlockColumns)}, {0, 0}};
        const Sums sums = sums_of(product, block, memory);
        do {
          block.terms = {block.terms.end, std::min(product.depth, block.terms.end + block_terms)};
          multiply_block(product, block, sums);
        } while (block.terms.end < product.depth);
      }
  }
};

// How a unit that multiplies by one number in all lanes adds up a tile. Rows of a are found from every fourth one: more pointers than that
// do not fit into registers.
template <typename Unit, int64_t Rows, int64_t Vectors, bool AlongRows>
KEDGE_INLINE void add_by_broadcast(const TileTask& task, typename Unit::Vector (&sum)[Rows][Vectors]) {
  constexpr int64_t kPanel = Unit::kVectors * Unit::kWidth, kGroups = (Rows + 3) / 4, kTogether = 4;
  const float* panel = task.panel;
  const int64_t step = AlongRows ? 1 : kGroupOf<Unit>, apart = AlongRows ? task.a_row : 1;
  const float* group[kGroups];
  for (int64_t g = 0; g < kGroups; ++g) group[g] = task.a + 4 * g * apart;
  const auto add = [&](int64_t ahead) __attribute__((always_inline)) {
    typename Unit::Vector b[Vectors];
    for (int64_t v = 0; v < Vectors; ++v) b[v] = Unit::load(panel + ahead * kPanel + v * Unit::kWidth);
    for (int64_t m = 0; m < Rows; ++m) {
      const auto a = Unit::broadcast(group[m / 4] + ahead * step + m % 4 * apart);
      for (int64_t v = 0; v < Vectors; ++v) sum[m][v] = Unit::fused(a, b[v], sum[m][v]);
    }
  };
  const auto advance = [&](int64_t terms) __attribute__((always_inline)) {
    panel += terms * kPanel;
    for (int64_t g = 0; g < kGroups; ++g) group[g] += terms * step;
  };
  int64_t k = 0;
  for (; k + kTogether <= task.depth; k += kTogether) {
    fetch_ahead(task, k);
#pragma GCC unroll 4
    for (int64_t ahead = 0; ahead < kTogether; ++ahead) add(ahead);
    advance(kTogether);
  }
  for (; k < task.depth; ++k) {
    add(0);
    advance(1);
  }
}

}  // namespace kedge::cpu
