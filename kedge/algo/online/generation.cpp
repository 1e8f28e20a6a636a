#include "kedge/algo/online/generation.h"

#include <algorithm>
#include <string>

#include "kedge/core/cuda_device.h"
#include "kedge/core/machine.h"

namespace kedge {

EngineInput generation_input(const OnlineSettings& settings, const OnlineLengths& lengths, const ModelConfig& network,
                             const StorageOptions& storage, int num_ranks) {
  const int64_t prompts = settings.loop.batch_iterator.use_flask ? settings.rollouts.num_rollout_samples
                                                                 : (settings.rollouts.num_rollout_samples + num_ranks - 1) / num_ranks;
  return {.model = network,
          .dtype = storage.dtype,
          .is_cuda = storage.device.is_cuda(),
          .use_graphs = settings.model.engine.use_graphs,
          .scheduler = settings.model.engine.scheduler,
          .answers = prompts * settings.samples_per_prompt,
          .usual = lengths.context,
          .longest = lengths.context};
}

void rehearse_generation(Engine& engine, const EngineInput& input, const OnlineLengths& lengths, int64_t samples_per_prompt) {
  constexpr int64_t kSampled = 3;
  const int64_t prompts = std::max<int64_t>(1, std::min(input.answers, input.scheduler.running_on(input.is_cuda)) / samples_per_prompt);
  const int64_t length = std::clamp<int64_t>(input.scheduler.max_batch_tokens / prompts, 1, lengths.max_prompt);
  std::vector<GenerateRequest> requests(static_cast<size_t>(prompts));
  for (GenerateRequest& request : requests) {
    request.prompt.assign(static_cast<size_t>(length), 0);
    request.num_samples = samples_per_prompt;
    request.max_new = std::min(kSampled, lengths.max_new);
    request.where = "the rehearsal";
  }
  static_cast<void>(engine.generate(std::move(requests)));
}

GenerationWeights::GenerationWeights(const Model& policy, ReshardedModel* copy) : copy_(copy) {
  if (copy_ == nullptr) {
    whole_.emplace(policy.parameters());
  } else {
    copy_->fill();
  }
}

GenerationWeights::~GenerationWeights() {
  if (copy_ != nullptr) copy_->empty();
}

EngineConfig engine_config(const OnlineSettings& settings, const OnlineLengths& lengths, const Model& model, int num_ranks) {
  EngineConfig config = settings.model.engine;
  if (config.memory == "auto")
    config.memory = std::to_string(
        std::min(engine_bytes(generation_input(settings, lengths, model.own_shape(), model.parameters().options(), num_ranks)).cache,
                 (model.device().is_cuda() ? free_cuda_bytes() : this_machine().available_bytes) / 2));
  return config;
}

TokenId drawable_ids(const Tokenizer& tokenizer, const Model& model) {
  return static_cast<TokenId>(std::min<int64_t>(tokenizer.vocab_size(), model.config().vocab_size));
}

bool trusts_engine(LogprobSource source, at::Device device, bool is_resharded) {
  return source == LogprobSource::engine || (source == LogprobSource::automatic && device.is_cpu() && !is_resharded);
}

}  // namespace kedge
