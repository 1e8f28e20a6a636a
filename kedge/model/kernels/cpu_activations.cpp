#include "kedge/model/kernels/cpu_activations.h"

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_rows.h"

namespace kedge::cpu {
namespace {

// The error function within a few units in the last place: a ratio of polynomials (Eigen's), beyond 4 the sign.
KEDGE_INLINE float erf_of(float x) {
  const float above = x < -4.0F ? -4.0F : x;
  const float c = above > 4.0F ? 4.0F : above, c2 = c * c;
  float p = -2.72614225801306e-10F;
  p = p * c2 + 2.77068142495902e-08F;
  p = p * c2 + -2.10102402082508e-06F;
  p = p * c2 + -5.69250639462346e-05F;
  p = p * c2 + -7.34990630326855e-04F;
  p = p * c2 + -2.95459980854025e-03F;
  p = p * c2 + -1.60960333262415e-02F;
  float q = -1.45660718464996e-05F;
  q = q * c2 + -2.13374055278905e-04F;
  q = q * c2 + -1.68282697438203e-03F;
  q = q * c2 + -7.37332916720468e-03F;
  q = q * c2 + -1.42647390514189e-02F;
  return c * p / q;
}

KEDGE_INLINE float sigmoid_of(float x) { return 1.0F / (1.0F + exp_of(-x)); }

// Each has the function and its derivative.
struct Silu {
  KEDGE_INLINE static float value(float x) { return x * sigmoid_of(x); }
  KEDGE_INLINE static float slope(float x) {
    const float s = sigmoid_of(x);
    return s + x * s * (1.0F - s);
  }
};
struct Gelu {
  KEDGE_INLINE static float share(float x) { return 0.5F * erf_of(x * 0.707106781F) + 0.5F; }
  KEDGE_INLINE static float value(float x) { return x * share(x); }
  KEDGE_INLINE static float slope(float x) { return share(x) + x * 0.398942280F * exp_of(-0.5F * x * x); }
};
// 0.5 (1 + tanh(u)) = sigmoid(2 u).
struct GeluTanh {
  static constexpr float kFirst = 1.59576912F, kThird = 0.0713548163F;

  KEDGE_INLINE static float share(float x) { return sigmoid_of(x * (kThird * (x * x) + kFirst)); }
  KEDGE_INLINE static float value(float x) { return x * share(x); }
  KEDGE_INLINE static float slope(float x) {
    const float s = share(x);
    return s + x * s * (1.0F - s) * (3 * kThird * (x * x) + kFirst);
  }
};
// NaN stays NaN.
struct Relu {
  KEDGE_INLINE static float value(float x) { return x < 0 ? 0.0F : x; }
  KEDGE_INLINE static float slope(float x) { return x > 0 ? 1.0F : 0.0F; }
};
struct Relu2 {
  KEDGE_INLINE static float value(float x) { return Relu::value(x) * Relu::value(x); }
  KEDGE_INLINE static float slope(float x) { return 2.0F * Relu::value(x); }
};

template <typename F, typename T>
KEDGE_INLINE void apply_all(const T* x, int64_t begin, int64_t end, T* out) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) store(out[i], F::value(widen(x[i])));
}
template <typename F, typename T>
KEDGE_INLINE void slope_all(const T* dout, const T* x, int64_t begin, int64_t end, T* dx) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) store(dx[i], widen(dout[i]) * F::slope(widen(x[i])));
}

// One function a type and activation, so that each can be cloned.
#define KEDGE_ACTIVATION(F, T)                                                                                            \
  KEDGE_VECTOR_CLONES void apply(F, const T* x, int64_t begin, int64_t end, T* out) { apply_all<F>(x, begin, end, out); } \
  KEDGE_VECTOR_CLONES void apply_slope(F, const T* dout, const T* x, int64_t begin, int64_t end, T* dx) {                 \
    slope_all<F>(dout, x, begin, end, dx);                                                                                \
  }
#define KEDGE_ACTIVATIONS(T)    \
  KEDGE_ACTIVATION(Silu, T)     \
  KEDGE_ACTIVATION(Gelu, T)     \
  KEDGE_ACTIVATION(GeluTanh, T) \
  KEDGE_ACTIVATION(Relu, T)     \
  KEDGE_ACTIVATION(Relu2, T)
KEDGE_ACTIVATIONS(float)
KEDGE_ACTIVATIONS(at::BFloat16)
#undef KEDGE_ACTIVATIONS
#undef KEDGE_ACTIVATION

template <typename F>
void with_function(Activation activation, F&& f) {
  switch (activation) {
    case Activation::silu:
      return f(Silu{});
    case Activation::gelu:
      return f(Gelu{});
    case Activation::gelu_tanh:
      return f(GeluTanh{});
    case Activation::relu:
      return f(Relu{});
    case Activation::relu2:
      return f(Relu2{});
  }
  throw Bug("an activation without a formula");
}

constexpr int64_t kGrain = 8192;

template <typename T>
void activate_all(const Tensor& x, Activation activation, const Tensor& out) {
  const T* in = x.const_data_ptr<T>();
  T* to = out.mutable_data_ptr<T>();
  with_function(activation, [&](auto function) {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) { apply(function, in, begin, end, to); });
  });
}

template <typename T>
void slopes_all(const Tensor& dout, const Tensor& x, Activation activation, const Tensor& dx) {
  const T *d = dout.const_data_ptr<T>(), *in = x.const_data_ptr<T>();
  T* to = dx.mutable_data_ptr<T>();
  with_function(activation, [&](auto function) {
    at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) { apply_slope(function, d, in, begin, end, to); });
  });
}

}  // namespace

void activate(const Tensor& x, Activation activation, const Tensor& out) {
  ensure(x.is_contiguous() && out.is_contiguous() && x.sizes() == out.sizes(), "an activation of contiguous tensors");
  x.scalar_type() == at::kFloat ? activate_all<float>(x, activation, out) : activate_all<at::BFloat16>(x, activation, out);
}

void activate_backward(const Tensor& dout, const Tensor& x, Activation activation, const Tensor& dx) {
  ensure(dout.is_contiguous() && x.is_contiguous() && dx.is_contiguous() && x.sizes() == dx.sizes(), "an activation of contiguous tensors");
  x.scalar_type() == at::kFloat ? slopes_all<float>(dout, x, activation, dx) : slopes_all<at::BFloat16>(dout, x, activation, dx);
}

}  // namespace kedge::cpu
