#pragma once
// The GPU's side of train/adamw; a build without CUDA has a stub.
#include "kedge/train/optim/adamw.h"

namespace kedge {

// A step's constants as the loops need them.
struct AdamWFactors {
  float grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float keep;          // 1 - lr * weight_decay
  float rate;          // lr over the first moment's correction
  float second_scale;  // one over the root of the second moment's
  float eps;
};
[[nodiscard]] AdamWFactors factors_of(const AdamWStep& step);

namespace cuda {

void adamw_update(const AdamWTensors& tensors, const AdamWFactors& factors);

}  // namespace cuda
}  // namespace kedge
