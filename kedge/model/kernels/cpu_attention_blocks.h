#pragma once
// The inner loops of attention on the CPU: a few queries side by side, with a block of keys. fp32, whatever type the model has, and
// compiled for every vector unit; independent of tensors.
#include <array>
#include <cstdint>

#include "kedge/model/kernels/cpu_vectors.h"

namespace kedge::cpu {

constexpr int64_t kQueries = 8;  // taken together, side by side in vectors
constexpr int64_t kStep = 8;     // keys or channels in registers at a time; `dim` is a multiple of it

// scores[j][q] = sum over d of keys[j][d] queries[d][q]. keys [num_keys, rounded up to kStep][dim], queries [dim][kQueries].
void score_block(const float* queries, const float* keys, int64_t num_keys, int64_t dim, float* scores);

// The softmax so far of kQueries queries: their largest score, and the sum of powers over it.
struct SoftmaxSoFar {
  std::array<float, kQueries> most, sum = {};
  SoftmaxSoFar() { most.fill(kNothingYet); }
};
// Turns a block's scores into weights and scales `out` [kQueries][dim] to the new maximum.
void fold_block(SoftmaxSoFar& softmax, float* scores, int64_t num_keys, int64_t dim, float* out);

// out[q][d] += sum over j of weights[j][q] rows[j][d]. out [kQueries][dim].
void mix_block(const float* weights, const float* rows, int64_t num_keys, int64_t dim, float* out);

// rows[j][d] += sum over q of weights[j][q] values[q][d]. values [kQueries][dim].
void spread_block(const float* weights, const float* values, int64_t num_keys, int64_t dim, float* rows);

// dscores = probs * (dprobs - along), probs = 2^(scores - log_sum), in place of scores and dprobs.
void score_gradient_block(const float* log_sum, const float* along, int64_t num_keys, float* probs, float* dscores);

// The sum of a[i] b[i].
float product_sum(const float* a, const float* b, int64_t size);

}  // namespace kedge::cpu
