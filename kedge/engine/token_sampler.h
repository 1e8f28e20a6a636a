#pragma once
// Samples the tokens of a step from its logits, on CPU or GPU. The rules are those of sampling.h.
#include <optional>
#include <span>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/engine/sampling.h"

namespace kedge {

struct Draw {
  int64_t row = 0;  // of the logits; several draws may share one
  SamplingConfig config = {};
  SamplingRow from = {};
};

// Not thread-safe.
class TokenSampler {
 public:
  // Logits [rows, vocab] of any type. Nothing if a row's logits are not finite or no token is allowed. Waits for the device.
  [[nodiscard]] std::vector<std::optional<Drawn>> draw(const Tensor& logits, std::span<const Draw> draws);

 private:
  Tensor host_, device_;  // buffers for transfers to and from a GPU
};

}  // namespace kedge
