#pragma once
// A network with its weights: the decoder and a head, for a language model, a reward model or a critic. Independent of files and text.
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/model/adapters.h"
#include "kedge/model/decoder.h"
#include "kedge/model/logprob_head.h"
#include "kedge/model/parameters.h"

namespace kedge {

// Not thread-safe. Owns everything it computes with; its address must not change while passes are recorded.
class Model {
 public:
  // Weights are zero until they are loaded or initialised.
  Model(ModelConfig config, const HeadOptions& head, const StorageOptions& storage);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void initialise(uint64_t seed) { parameters_.initialise(seed, config_.init_range); }
  void initialise_head(uint64_t seed);  // the score head alone

  // A key of its config.json that kedge reads and others ignore.
  void note(std::string_view key, Json value) { config_.source.set(key, std::move(value)); }

  // Adapters on a base that does not train: those the configuration chooses, or on given slices. Once, before the first pass.
  void add_adapters(const LoraConfig& lora, bool trainable, const std::string& where = "peft");
  void add_adapters(const LoraConfig& lora, std::vector<LinearSlice> slices, bool trainable);
  // Merges the adapters into the base weights, replaces the base's score head by theirs, and removes them.
  void merge_adapters();

  [[nodiscard]] const ModelConfig& config() const { return config_; }        // of the complete model
  [[nodiscard]] const ModelConfig& own_shape() const { return own_shape_; }  // of what this rank computes
  [[nodiscard]] const HeadOptions& head() const { return head_; }
  [[nodiscard]] const ModelParameters& places() const { return places_; }
  [[nodiscard]] Parameters& parameters() { return parameters_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] Adapters* adapters() { return adapters_.get(); }
  [[nodiscard]] const Adapters* adapters() const { return adapters_.get(); }
  // What an optimizer updates: the adapters if there are any, else everything.
  [[nodiscard]] Parameters& trained() { return adapters_ ? adapters_->parameters() : parameters_; }
  [[nodiscard]] const Parameters& trained() const { return adapters_ ? adapters_->parameters() : parameters_; }
  [[nodiscard]] at::Device device() const { return parameters_.options().device; }

  [[nodiscard]] Tensor hidden(const PackedBatch& batch, const PassOptions& options = {}) const { return decoder_->hidden(batch, options); }
  [[nodiscard]] const Decoder& decoder() const { return *decoder_; }  // changes when adapters are added or removed
  // Ranks that hold the model together make the same number of training passes, forward and backward. Every rank calls it after each of
  // them: one that left something out, having no rows or nothing to learn from, takes part in what the others need.
  void complete_pass() const;

  [[nodiscard]] HeadView language_head() const;
  [[nodiscard]] ScoreView score_head() const;  // the adapters' own while they are on

 private:
  ModelConfig config_, own_shape_;
  HeadOptions head_;
  ModelParameters places_;
  Parameters parameters_;
  std::unique_ptr<Adapters> adapters_;
  std::unique_ptr<Decoder> decoder_;
};

// Log-probabilities of the batch's own tokens, in row order; `predicted` chooses others.
[[nodiscard]] TokenLogprobs model_logprobs(const Model& model, const PackedBatch& batch, const PredictedTokens& predicted,
                                           const LogprobOptions& logprobs = {}, const PassOptions& pass = {});

}  // namespace kedge
