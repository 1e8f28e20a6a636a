#pragma once
// The element-wise parts of a decoder layer, each with its own backward, for CPU and CUDA. Matrix products are not here. Everything is
// computed row by row in fp32 whatever the tensors' type, so a row's bits do not depend on other rows. Nothing here records
// gradients; those of weights are added to fp32 buffers, which may be undefined if they are not needed.
#include "kedge/core/tensor.h"
#include "kedge/model/spec/model_config.h"

namespace kedge {

struct NormWeights {
  Tensor weight, bias;  // [size]; bias may be undefined
  Tensor weight_gradient, bias_gradient;
  NormKind kind = NormKind::rms;
  double eps = 0;
};

struct Normed {
  Tensor out;         // like x
  Tensor mean, rstd;  // fp32 [rows]; no mean for rms
};

// x [rows, size], contiguous.
[[nodiscard]] Normed norm(const Tensor& x, const NormWeights& weights);
// `out` again, from the statistics of the first time.
[[nodiscard]] Tensor norm_again(const Tensor& x, const Normed& saved, const NormWeights& weights);
// The gradient of x, plus `beside` if defined (the gradient of x around the norm).
[[nodiscard]] Tensor norm_backward(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights,
                                   const Tensor& beside);

// activation(gate) * up of [rows, 2 size] = [gate, up], or activation(up) of [rows, size] without a gate.
struct GateKind {
  Activation activation = Activation::silu;
  bool gated = true;
};
[[nodiscard]] Tensor gate(const Tensor& gate_up, const GateKind& kind);
struct GateGradient {
  Tensor gate_up;  // the gradient of gate_up
  Tensor out;      // gate(gate_up) again: the product after it needs it
};
[[nodiscard]] GateGradient gate_backward(const Tensor& dout, const Tensor& gate_up, const GateKind& kind);

// Rotates the first `dim` channels of the first `num_heads` heads of every row by the row's angles, in place. x [rows, width]; cos and
// sin fp32 [rows, dim / 2]. `backwards` undoes it.
struct Rotation {
  Tensor cos, sin;
  int64_t num_heads = 0, head_dim = 0, dim = 0;
};
void rotate_(const Tensor& x, const Rotation& rotation, bool backwards);

// Adds row i of `rows` to row ids[i] of the fp32 `table`.
void add_rows_(const Tensor& table, const Tensor& ids, const Tensor& rows);

// Log-probabilities of `targets` (int64 [rows]) under softmax(logits / temperature), logits [rows, vocab] of any type. The quotients are
// fp32; at a temperature of 1 nothing is divided.
struct LogitStats {
  Tensor logprob;  // fp32 [rows]
  Tensor log_sum;  // fp32 [rows]: log of the sum of exponentials
  Tensor entropy;  // fp32 [rows], in nats; undefined unless requested
  double temperature = 1;
};
[[nodiscard]] LogitStats logit_stats(const Tensor& logits, const Tensor& targets, bool with_entropy, double temperature = 1);
// The gradient of the logits, in `dtype`, given those of logprob and entropy (fp32 [rows]; that of entropy may be undefined). May
// overwrite `logits`. These may be a part of the vocabulary, with stats of all of it: a target of -1 is in another part.
[[nodiscard]] Tensor logit_gradient(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob,
                                    const Tensor& dentropy, at::ScalarType dtype);

// y = x weight^T (+ bias), + beside if defined. x [rows, in], weight [out, in].
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& beside = {});
// sum += x weight^T (+ bias), in place; the same numbers as with `sum` beside.
void add_linear_(const Tensor& sum, const Tensor& x, const Tensor& weight, const Tensor& bias);
// a b, for the backward of a product: dx = dy weight. a [rows, inner], b [inner, columns].
[[nodiscard]] Tensor product(const Tensor& a, const Tensor& b);
// sum += factor a b, in place. Only a GPU takes a factor, and some columns of a matrix as sum.
void add_product_(const Tensor& sum, const Tensor& a, const Tensor& b, double factor = 1);
// Adds factor dy^T x to the fp32 gradient; nothing if it is undefined. Only a GPU takes a factor.
void add_weight_gradient(const Tensor& gradient, const Tensor& dy, const Tensor& x, double factor = 1);
// Adds the sum of dy's rows.
void add_bias_gradient(const Tensor& gradient, const Tensor& dy);

}  // namespace kedge
