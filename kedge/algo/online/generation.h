#pragma once
// How a policy's responses are generated under its settings: what the engine is asked for and how much memory it takes.
#include "kedge/algo/online/online_plan.h"
#include "kedge/engine/engine.h"
#include "kedge/engine/engine_memory.h"
#include "kedge/model/model.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// What a rank asks of its engine, with weights as `storage` has them. `network` must outlive it.
[[nodiscard]] EngineInput generation_input(const OnlineSettings& settings, const OnlineLengths& lengths, const ModelConfig& network,
                                           const StorageOptions& storage, int num_ranks);

// As many sequences as will ever run together, over as many prompt tokens as are computed together; and a few sampled tokens, so that steps
// are recorded where they will be.
void rehearse_generation(Engine& engine, const EngineInput& input, const OnlineLengths& lengths, int64_t samples_per_prompt);

// How the engine of a policy is to be: `memory: auto` takes what the answers of a step need, and at most half of what is free.
[[nodiscard]] EngineConfig engine_config(const OnlineSettings& settings, const OnlineLengths& lengths, const Model& model, int num_ranks);

// Ids from here on are never drawn.
[[nodiscard]] TokenId drawable_ids(const Tokenizer& tokenizer, const Model& model);

// Are the log-probabilities that answers were drawn by taken for those of training?
[[nodiscard]] bool trusts_engine(LogprobSource source, at::Device device);

}  // namespace kedge
