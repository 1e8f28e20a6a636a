#pragma once
// The decoder of every family: token ids to hidden states, differentiable. One function for training, policy and reference
// log-probabilities, rewards and values. Independent of heads.
#include <memory>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/model/adapters.h"
#include "kedge/model/decoder_layer.h"
#include "kedge/model/kernels/packed_batch.h"
#include "kedge/model/kernels/rope_cache.h"
#include "kedge/model/parameters.h"
#include "kedge/model/spec/model_config.h"

namespace kedge {

struct PassOptions {
  bool checkpoint = false;   // keep only every layer's input and recompute the rest
  DropoutSeed dropout_seed;  // set: a training pass in which adapters drop outputs
};

// Not thread-safe. Its parts must outlive it; `adapters` may be null.
class Decoder {
 public:
  // `config`: of what this rank computes.
  Decoder(const ModelConfig& config, const ModelParameters& places, const Parameters& parameters, const Adapters* adapters);

  // [tokens, hidden], after the last norm. With gradients switched on and something to train, backward through it adds to the
  // parameters' gradient buffers.
  [[nodiscard]] Tensor hidden(const PackedBatch& batch, const PassOptions& options = {}) const;

  // The parts, for other uses: generation keeps keys and values between passes.
  [[nodiscard]] Tensor embed(const Tensor& ids, const Tensor& positions) const;
  [[nodiscard]] LayerView layer(size_t index) const;
  [[nodiscard]] NormWeights last_norm() const;

 private:
  struct Tape;
  class Pass;

  [[nodiscard]] Tensor forward(Tape& tape, bool keep) const;
  void backward(Tape& tape, const Tensor& dhidden) const;
  [[nodiscard]] NormWeights norm_of(int weight, int bias, NormKind kind) const;
  [[nodiscard]] bool trains() const;
  // Tokens whose rows of the embedding this rank has, and their rows there; the others get row 0.
  struct OwnTokens {
    Tensor rows, are_own;
  };
  [[nodiscard]] OwnTokens own_tokens(const Tensor& ids) const;
  [[nodiscard]] TokenSlices slices_of(int64_t num_tokens) const;
  // Of the tokens that this rank has.
  [[nodiscard]] Tensor embed(const Tensor& ids, const Tensor& positions, const TokenSlices& tokens) const;

  const ModelConfig& config_;
  const ModelParameters& places_;
  const Parameters& parameters_;
  const Adapters* adapters_;
  mutable RotaryTable rotary_;
  Tensor anchor_;  // requires gradients, so that a pass is recorded
};

}  // namespace kedge
