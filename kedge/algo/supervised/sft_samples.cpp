#include "kedge/algo/supervised/sft_samples.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/engine/engine.h"

namespace kedge {

int64_t sample_cache_bytes(const ModelConfig& config, int64_t element_size, int64_t num_tokens) {
  return 2 * config.num_layers * config.kv_size() * element_size * (2 * num_tokens + 1024);
}

SftSamples::SftSamples(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const SftSamplesOptions& options)
    : model_(model), tokenizer_(tokenizer), options_(options) {}

void SftSamples::add(const MaskedTokens& row) {
  const auto first = std::find(row.mask.begin(), row.mask.end(), uint8_t{1});
  if (first == row.mask.begin() || first == row.mask.end()) return;
  const auto last = std::find(first, row.mask.end(), uint8_t{0});
  const auto begin = row.ids.begin() + (first - row.mask.begin()), end = row.ids.begin() + (last - row.mask.begin());
  examples_.push_back({{row.ids.begin(), begin}, {begin, end}});
}

std::vector<SampleTable> SftSamples::draw() const {
  std::vector<GenerateRequest> requests;
  int64_t num_tokens = 0;
  for (const Example& example : examples_) {
    GenerateRequest request;
    request.prompt = example.prompt;
    request.max_new = options_.max_tokens;
    request.sampling.use_greedy = true;
    request.end_ids = tokenizer_.special().stop;
    request.vocab_size = std::min<int64_t>(tokenizer_.vocab_size(), model_->config().vocab_size);
    num_tokens += static_cast<int64_t>(request.prompt.size()) + options_.max_tokens;
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return {};
  EngineConfig engine_config;
  engine_config.memory = std::to_string(
      sample_cache_bytes(model_->config(), static_cast<int64_t>(c10::elementSize(model_->parameters().options().dtype)), num_tokens));
  engine_config.use_graphs = false;
  Engine engine(*model_, engine_config);
  const auto completions = engine.generate(std::move(requests));
  SampleTable table{"validation", {}};
  for (size_t i = 0; i < examples_.size(); ++i) {
    const Completion& drawn = completions[i][0];
    const auto text = [&](const TokenIds& ids) { return tokenizer_.decode_text(ids, SpecialTokens::skip); };
    table.rows.push_back({.prompt = tokenizer_.decode_text(examples_[i].prompt),
                          .response = drawn.finish == Finish::failed ? drawn.error : text(drawn.tokens),
                          .reward = std::nullopt,
                          .extra = {{"wanted", text(examples_[i].wanted)}}});
  }
  return {std::move(table)};
}

}  // namespace kedge
