#pragma once
// Draws the tokens of a step from its logits, wherever those lie. The rules are those of sampling.h.
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
  // Logits [rows, vocab] of any type. Nothing where a row's logits are no numbers or no token is allowed. Waits for the device.
  [[nodiscard]] std::vector<std::optional<Drawn>> draw(const Tensor& logits, std::span<const Draw> draws);

 private:
  Tensor host_, device_;  // what goes up to a GPU and comes back
};

}  // namespace kedge
