#include "kedge/model/adapters.h"

#include <cmath>
#include <utility>

#include "kedge/core/random.h"

namespace kedge {
namespace {

constexpr uint64_t kAdapterStream = 0xADA9;

std::vector<ParameterSpec> specs_of(const std::vector<LinearSlice>& slices, int64_t rank) {
  std::vector<ParameterSpec> specs;
  for (const LinearSlice& slice : slices) {
    specs.push_back({slice.module + ".lora_A.weight", {rank, slice.in_size}, true, ParameterSpec::Init::normal});
    specs.push_back({slice.module + ".lora_B.weight", {slice.rows, rank}, true, ParameterSpec::Init::zeros});
  }
  return specs;
}

}  // namespace

Adapters::Adapters(const LoraConfig& config, std::vector<LinearSlice> slices, const StorageOptions& options)
    : config_(config), slices_(std::move(slices)), parameters_(specs_of(slices_, config.adapter_dim), options) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    const LinearSlice& slice = slices_[i];
    views_[slice.parameter].push_back({parameters_.value(a_of(i)), parameters_.value(b_of(i)), parameters_.gradient(a_of(i)),
                                       parameters_.gradient(b_of(i)), slice.row, slice.rows, config_.scale(), config_.adapter_dropout, i});
  }
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
