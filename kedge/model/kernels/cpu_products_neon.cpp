#include "kedge/model/kernels/cpu_products_units.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "kedge/model/kernels/cpu_product_tiles.h"

namespace kedge::cpu {
namespace {

struct Neon {
  using Vector = float32x4_t;
  static constexpr int64_t kWidth = 4, kRows = 8, kVectors = 2;

  KEDGE_INLINE static Vector zero() { return vdupq_n_f32(0.0F); }
  KEDGE_INLINE static Vector load(const float* p) { return vld1q_f32(p); }
  KEDGE_INLINE static Vector load(const uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
  KEDGE_INLINE static void store(float* p, Vector x) { vst1q_f32(p, x); }
  // Round to nearest, ties to even; NaN stays NaN.
  KEDGE_INLINE static void store(uint16_t* p, Vector x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
    vst1_u16(p, vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, vdupq_n_u32(0x7FC00000)), 16));
  }
  KEDGE_INLINE static float widen(float x) { return x; }
  KEDGE_INLINE static float widen(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16U); }
  KEDGE_INLINE static Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }

  template <typename T>
  KEDGE_INLINE static void turn(const T* from, int64_t stride, float* to, int64_t to_stride) {
    const Vector a = load(from), b = load(from + stride), c = load(from + 2 * stride), d = load(from + 3 * stride);
    const Vector ac = vzip1q_f32(a, c), bd = vzip1q_f32(b, d), ac_high = vzip2q_f32(a, c), bd_high = vzip2q_f32(b, d);
    store(to, vzip1q_f32(ac, bd));
    store(to + to_stride, vzip2q_f32(ac, bd));
    store(to + 2 * to_stride, vzip1q_f32(ac_high, bd_high));
    store(to + 3 * to_stride, vzip2q_f32(ac_high, bd_high));
  }

  // sum + a[Lane] b, fused. Written out: g++ 12 loads the lanes one by one instead, and moves sums about.
  template <int64_t Lane>
  KEDGE_INLINE static void add_lane(Vector& sum, Vector b, Vector a) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(b), "w"(a), "i"(Lane));
  }
  template <int64_t Lane, int64_t Rows, int64_t Vectors>
  KEDGE_INLINE static void add_term(const Vector (&a)[Rows], const float* panel, Vector (&sum)[Rows][Vectors]) {
    for (int64_t v = 0; v < Vectors; ++v) {
      const Vector b = load(panel + v * kWidth);
      for (int64_t m = 0; m < Rows; ++m) add_lane<Lane>(sum[m][v], b, a[m]);
    }
  }

  template <int64_t Rows, int64_t Vectors, bool AlongRows>
  KEDGE_INLINE static void add_products(const TileTask& task, Vector (&sum)[Rows][Vectors]) {
    constexpr int64_t kPanel = kVectors * kWidth;
    const float* panel = task.panel;
    if constexpr (AlongRows) {
      int64_t k = 0;
      for (; k + 4 <= task.depth; k += 4, panel += 4 * kPanel) {
        Vector a[Rows];
        for (int64_t m = 0; m < Rows; ++m) a[m] = load(task.a + m * task.a_row + k);
        add_term<0>(a, panel, sum);
        add_term<1>(a, panel + kPanel, sum);
        add_term<2>(a, panel + 2 * kPanel, sum);
        add_term<3>(a, panel + 3 * kPanel, sum);
      }
      for (; k < task.depth; ++k, panel += kPanel) {
        Vector a[Rows];
        for (int64_t m = 0; m < Rows; ++m) a[m] = vld1q_dup_f32(task.a + m * task.a_row + k);
        add_term<0>(a, panel, sum);
      }
    } else {
      const float* from = task.a;
      for (int64_t k = 0; k < task.depth; ++k, panel += kPanel, from += kGroupOf<Neon>) {
        Vector b[Vectors];
        for (int64_t v = 0; v < Vectors; ++v) b[v] = load(panel + v * kWidth);
        for (int64_t m = 0; m < Rows; m += 4) {
          const Vector a = load(from + m);  // a group is complete
          for (int64_t v = 0; v < Vectors; ++v) {
            add_lane<0>(sum[m][v], b[v], a);
            if (m + 1 < Rows) add_lane<1>(sum[m + 1][v], b[v], a);
            if (m + 2 < Rows) add_lane<2>(sum[m + 2][v], b[v], a);
            if (m + 3 < Rows) add_lane<3>(sum[m + 3][v], b[v], a);
          }
        }
      }
    }
  }
};

}  // namespace

void multiply_neon(const Product<float>& product, Range rows, Range columns) { Tiles<Neon, float>::multiply(product, rows, columns); }
void multiply_neon(const Product<uint16_t>& product, Range rows, Range columns) { Tiles<Neon, uint16_t>::multiply(product, rows, columns); }

}  // namespace kedge::cpu
#endif
