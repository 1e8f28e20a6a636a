#pragma once
// How a policy's responses are generated under its settings: the engine's options and how much memory it takes.
#include "kedge/algo/online/online_plan.h"
#include "kedge/engine/engine.h"
#include "kedge/engine/engine_memory.h"
#include "kedge/model/resharded_model.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// What a rank needs from its engine, with weights stored as in `storage`. `network` must outlive it.
[[nodiscard]] EngineInput generation_input(const OnlineSettings& settings, const OnlineLengths& lengths, const ModelConfig& network,
                                           const StorageOptions& storage, int num_ranks);

// The maximum number of concurrent sequences and of prompt tokens computed together, and a few sampled tokens, so that decoding steps
// are recorded as CUDA graphs as in a real step.
void rehearse_generation(Engine& engine, const EngineInput& input, const OnlineLengths& lengths, int64_t samples_per_prompt);

// While it lives, there are weights to generate with: those of the policy, complete, or the copy in generation's own layout. Collective.
class GenerationWeights {
 public:
  GenerationWeights(const Model& policy, ReshardedModel* copy);
  ~GenerationWeights();
  GenerationWeights(const GenerationWeights&) = delete;
  GenerationWeights& operator=(const GenerationWeights&) = delete;

 private:
  std::optional<WholeWeights> whole_;
  ReshardedModel* copy_;
};

// Options of a policy's engine: `memory: auto` takes what the answers of a step need, and at most half of the free memory.
[[nodiscard]] EngineConfig engine_config(const OnlineSettings& settings, const OnlineLengths& lengths, const Model& model, int num_ranks);

// Ids from here on are never sampled.
[[nodiscard]] TokenId drawable_ids(const Tokenizer& tokenizer, const Model& model);

// Are the log-probabilities of sampling used as those of training? `is_resharded`: it computes in another layout.
[[nodiscard]] bool trusts_engine(LogprobSource source, at::Device device, bool is_resharded);

}  // namespace kedge
