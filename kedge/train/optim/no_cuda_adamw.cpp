#include "kedge/core/error.h"
#include "kedge/train/optim/cuda_adamw.h"

namespace kedge::cuda {

void adamw_update(const AdamWTensors&, const AdamWFactors&) {
  throw Error("this kedge was built without CUDA; build it with: scripts/build cuda");
}

}  // namespace kedge::cuda
