#include "kedge/core/no_cuda.h"
#include "kedge/train/optim/cuda_adamw.h"

namespace kedge::cuda {

void adamw_update(const AdamWTensors&, const AdamWFactors&) { fail_without_cuda(); }

}  // namespace kedge::cuda
