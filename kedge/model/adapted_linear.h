#pragma once
// A linear layer with its adapters, forward and backward, as the decoder's layers use it.
#include <cstdint>
#include <optional>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/model/adapters.h"
#include "kedge/model/token_slices.h"

namespace kedge {

struct LinearView {
  Tensor weight, bias;  // bias may be undefined
  Tensor weight_gradient, bias_gradient;
  const std::vector<AdapterView>* adapters = nullptr;  // may be null
};

// Set in training passes where adapters drop outputs: the masks are a function of it, so the backward gets the same ones.
using DropoutSeed = std::optional<uint64_t>;

// x [rows, in] to [rows, out], plus `beside` where defined.
[[nodiscard]] Tensor adapted_linear(const Tensor& x, const LinearView& view, DropoutSeed seed, const Tensor& beside = {});
// Adds the layer's output to `sum` in place, nothing dropped: for passes that are not recorded.
void add_adapted_linear_(const Tensor& sum, const Tensor& x, const LinearView& view);
// adapted_linear() of a layer whose inputs are split over ranks: each has some columns of x and of the weight, and gets the sum, of all
// rows or of its own ones. `beside` has those.
[[nodiscard]] Tensor summed_linear(const Tensor& x, const LinearView& view, DropoutSeed seed, const Tensor& beside,
                                   const TokenSlices& tokens);
// Of every adapter: the gradient of what its A gives its B, which the other gradients need.
[[nodiscard]] std::vector<Tensor> inner_gradients(const Tensor& dy, const LinearView& view, DropoutSeed seed);
// The gradient of x.
[[nodiscard]] Tensor linear_input_gradient(const Tensor& dy, const LinearView& view, DropoutSeed seed, const std::vector<Tensor>& inner);
// Are there weights or adapters to train?
[[nodiscard]] bool has_gradients(const LinearView& view);
// Adds the gradients of weights and adapters to their buffers.
void add_linear_gradients(const Tensor& dy, const Tensor& x, const LinearView& view, DropoutSeed seed, const std::vector<Tensor>& inner);

}  // namespace kedge
