#pragma once
// A step's tokens through the network, to the logits for sampling. Reads the model's weights in place. Independent of requests
// and sampling.
#include <array>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/engine/cuda_graph.h"
#include "kedge/engine/kv_memory.h"
#include "kedge/engine/paged_attention.h"
#include "kedge/engine/scheduler.h"
#include "kedge/model/kernels/rope_cache.h"
#include "kedge/model/model.h"

namespace kedge {

struct RunnerOptions {
  bool use_graphs = true;  // record steps of one token per sequence, on CUDA
  int64_t max_length = 0;  // of any sequence
};

// Not thread-safe. `model` and `memory` must outlive it.
class Runner {
 public:
  Runner(const Model& model, const KeyValueMemory& memory, const RunnerOptions& options);

  // Logits [rows that are sampled, vocab] in the order of the step's rows, of the ids whose logits this rank has; no rows if nothing is
  // sampled. Valid until the next call. `drawn` are the tokens of the step before, int32 [draws] on the model's device, -1 where nothing
  // was sampled: sequences that await theirs read them from there. On CUDA this returns before the logits are computed.
  [[nodiscard]] Tensor run(const Step& step, const Scheduler& scheduler, const Tensor& drawn = {});

 private:
  // The step's tokens in the order they are computed in: those that attend to the cache first.
  struct Tokens {
    std::vector<int32_t> ids, positions;
    std::vector<const Sequence*> sequences;  // of every token
    std::vector<int64_t> fresh;              // lengths of the rows that do not
    std::vector<int32_t> drawn;              // tokens whose logits are needed
    std::vector<int32_t> awaited;            // pairs: a token whose id is not known yet, and the draw of the step before that it is
    int64_t num_paged = 0;
    bool decodes = false;  // one token of each sequence
    int64_t longest = 0;   // tokens a query sees at most
  };
  // The same as the network takes them.
  struct Inputs {
    Tensor ids, positions;  // int32 [tokens]
    Tensor drawn;           // int32; undefined: all
    PagedTokens tokens;
  };

  [[nodiscard]] static Tokens collect(const Step& step, const Scheduler& scheduler);
  [[nodiscard]] Inputs cpu_inputs(const Tokens& tokens);
  [[nodiscard]] Inputs cuda_inputs(const Tokens& tokens, int64_t num_rows, const Tensor& drawn);
  [[nodiscard]] Tensor decode(const Tokens& tokens, const Tensor& drawn);
  [[nodiscard]] Tensor logits(const Inputs& inputs) const;

  const Model& model_;
  const KeyValueMemory& memory_;
  RunnerOptions options_;
  RotaryTable rotary_;
  Tokens tokens_;
  // int32: what a step uploads at once. Steps take turns with the host's, since one may be prepared while the upload before is pending.
  std::array<Tensor, 2> hosts_;
  size_t turn_ = 0;
  Tensor device_;
  CudaGraphs graphs_;
  int64_t placement_ = 0;  // of the weights whose addresses the graphs have
};

}  // namespace kedge
