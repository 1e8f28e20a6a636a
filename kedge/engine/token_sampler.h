#pragma once
// Samples the tokens of a step from its logits, on CPU or GPU. The rules are those of sampling.h.
#include <array>
#include <optional>
#include <span>
#include <vector>

#include <c10/core/Event.h>

#include "kedge/core/tensor.h"
#include "kedge/engine/sampling.h"

namespace kedge {

struct Draw {
  int64_t row = 0;  // of the logits; several draws may share one
  SamplingConfig config = {};
  SamplingRow from = {};
};

// The draws of one step until they are read.
struct StartedDraws {
  std::vector<std::optional<Drawn>> drawn;  // on a GPU, filled when they are read
  Tensor host;                              // bytes: what goes to a GPU, then what comes back
  int64_t results_at = 0;                   // in it
  std::optional<c10::Event> done;           // on a GPU: the results are back
};

// What stays on a GPU: steps follow each other there, so one of each is enough.
struct DrawBuffers {
  Tensor draws;    // bytes
  Tensor results;  // int32 [draws, 2]: tokens and the bits of their log-probabilities
};

// Not thread-safe.
class TokenSampler {
 public:
  TokenSampler() = default;
  ~TokenSampler();  // waits for the device: it may be writing to our memory
  TokenSampler(const TokenSampler&) = delete;
  TokenSampler& operator=(const TokenSampler&) = delete;

  // Logits [rows, vocab] of any type. On a GPU it returns before the tokens are sampled, and what `draws` points to has been read.
  // At most two may be started and not taken.
  void start(const Tensor& logits, std::span<const Draw> draws);
  // What the oldest start() sampled: nothing if a row's logits are not finite or no token is allowed. Waits for the device.
  [[nodiscard]] std::vector<std::optional<Drawn>> take();
  // Both.
  [[nodiscard]] std::vector<std::optional<Drawn>> draw(const Tensor& logits, std::span<const Draw> draws);

  // The tokens of the newest start(), int32 [draws] on the logits' device, for work that is queued there before the next start(); -1
  // where nothing was sampled.
  [[nodiscard]] const Tensor& newest() const { return newest_; }

 private:
  std::array<StartedDraws, 2> started_;
  size_t num_started_ = 0, num_taken_ = 0;
  DrawBuffers buffers_;
  Tensor newest_;
};

}  // namespace kedge
