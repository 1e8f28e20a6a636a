#pragma once
// The sampling kernel on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

// One draw, as the device reads it.
struct DrawRow {
  double uniform;
  int32_t row;  // of the logits
  int32_t greedy;
  float temperature, top_p, penalty, logprob_temperature;
  int32_t top_k;
  int32_t vocab_size;                         // ids from here on may not be sampled
  int32_t used_begin, used_end, not_yet_end;  // in `ids`: tokens used so far, and behind them those that may not be sampled
};

// The result; token -1 if nothing can be sampled.
struct DrawnRow {
  int32_t token;
  float logprob;
};

struct SamplingLaunch {
  const float* logits;  // [rows, size]
  int64_t size;
  const DrawRow* draws;
  const int32_t* ids;
  uint32_t* is_used;  // [draws, words]: room for a bit for every id if a draw has a penalty, else null
  DrawnRow* drawn;
  int64_t num_draws;
};
[[nodiscard]] inline int64_t sampling_words(int64_t size) { return (size + 31) / 32; }
void launch_sampling(const SamplingLaunch& launch, cudaStream_t stream);

// Ids that a step reads from the draws of the one before.
struct AwaitedLaunch {
  const int32_t* tokens;  // -1: nothing was sampled, and 0 stands for it
  int64_t stride;         // of the tokens
  const int32_t* pairs;   // [num_pairs, 2]: where in `ids`, and which token
  int64_t num_pairs;
  int32_t* ids;
};
void launch_awaited(const AwaitedLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
