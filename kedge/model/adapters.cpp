#include "kedge/model/adapters.h"

#include <cmath>
#include <utility>

#include "kedge/core/random.h"

namespace kedge {
namespace {

constexpr uint64_t kAdapterStream = 0xADA9;

AdapterHead shape_of(const ScoreView& head) {
  return {head.weight.defined() ? head.weight.sizes().vec() : std::vector<int64_t>(), head.bias.defined()};
}

}  // namespace

std::vector<ParameterSpec> adapter_specs(const std::vector<LinearSlice>& slices, int64_t rank, const AdapterHead& head) {
  std::vector<ParameterSpec> specs;
  for (const LinearSlice& slice : slices) {
    specs.push_back({slice.module + ".lora_A.weight", {rank, slice.in_size}, true, ParameterSpec::Init::normal, -1});
    specs.push_back({slice.module + ".lora_B.weight", {slice.rows, rank}, true, ParameterSpec::Init::zeros, -1});
  }
  if (!head.shape.empty()) specs.push_back({"score.weight", head.shape, true, ParameterSpec::Init::normal, -1});
  if (head.bias) specs.push_back({"score.bias", {head.shape[0]}, false, ParameterSpec::Init::zeros, -1});
  return specs;
}

Adapters::Adapters(const LoraConfig& config, std::vector<LinearSlice> slices, const StorageOptions& options, const ScoreView& head)
    : config_(config),
      slices_(std::move(slices)),
      score_(head.weight.defined() ? a_of(slices_.size()) : -1),
      score_bias_(head.bias.defined() ? score_ + 1 : -1),
      parameters_(adapter_specs(slices_, config.adapter_dim, shape_of(head)), options) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    const LinearSlice& slice = slices_[i];
    views_[slice.parameter].push_back({parameters_.value(a_of(i)), parameters_.value(b_of(i)), parameters_.gradient(a_of(i)),
                                       parameters_.gradient(b_of(i)), slice.row, slice.rows, config_.scale(), config_.adapter_dropout, i});
  }
  if (score_ >= 0) parameters_.master(score_).copy_(head.weight);
  if (score_bias_ >= 0) parameters_.master(score_bias_).copy_(head.bias);
  parameters_.publish();
}

void Adapters::initialise(uint64_t seed) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    const Tensor& a = parameters_.master(a_of(i));
    const double range = std::sqrt(2.0 / static_cast<double>(a.size(0) + a.size(1)));
    const Random random(seed, Random::stream_of({kAdapterStream, i}));
    Tensor draws = at::empty(a.sizes(), at::kFloat);
    float* out = draws.mutable_data_ptr<float>();
    for (int64_t j = 0; j < draws.numel(); ++j) out[j] = static_cast<float>(random.normal(static_cast<uint64_t>(j)) * range);
    a.copy_(draws);
    parameters_.master(b_of(i)).zero_();
  }
  parameters_.publish();
}

const std::vector<AdapterView>& Adapters::on(int base_parameter) const {
  static const std::vector<AdapterView> kNone;
  const auto found = views_.find(base_parameter);
  return enabled_ && found != views_.end() ? found->second : kNone;
}

}  // namespace kedge
