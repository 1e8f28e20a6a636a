#pragma once
// Numbers for tests of the network: seeded, so that a failure repeats, and compared by one measure.
#include <initializer_list>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>

#include "kedge/core/random.h"
#include "kedge/core/tensor.h"

namespace kedge::testing {

// Standard normals times `scale`.
inline Tensor normals(at::IntArrayRef sizes, uint64_t seed, double scale = 1, at::ScalarType dtype = at::kFloat) {
  Tensor values = at::empty(sizes, at::kFloat);
  auto* out = values.mutable_data_ptr<float>();
  const Random random(seed, 7);
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)) * scale);
  return values.to(dtype);
}

inline Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

inline Tensor ids_below(int64_t bound, int64_t count, uint64_t seed) {
  Tensor values = at::empty({count}, at::kLong);
  const Random random(seed, 8);
  for (int64_t i = 0; i < count; ++i)
    values.mutable_data_ptr<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(bound), static_cast<uint64_t>(i)));
  return values;
}

// The same numbers in double precision, recording gradients.
inline Tensor leaf(const Tensor& x) { return x.detach().cpu().to(at::kDouble, false, true).requires_grad_(true); }

// The largest difference over the largest wanted number: the numbers of one tensor have one scale.
inline double relative_error(const Tensor& found, const Tensor& wanted) {
  const Tensor a = found.detach().cpu().to(at::kDouble), b = wanted.detach().cpu().to(at::kDouble);
  if (a.sizes() != b.sizes()) return 1e30;
  const double most = b.abs().max().item<double>();
  const double error = (a - b).abs().max().item<double>();
  return most == 0 ? error : error / most;
}

inline double largest_difference(const Tensor& found, const Tensor& wanted) {
  return (found.detach().cpu().to(at::kDouble) - wanted.detach().cpu().to(at::kDouble)).abs().max().item<double>();
}

inline bool same_bits(const Tensor& a, const Tensor& b) { return a.scalar_type() == b.scalar_type() && at::equal(a.cpu(), b.cpu()); }

}  // namespace kedge::testing
