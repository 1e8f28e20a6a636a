#include "kedge/model/parameters.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/random.h"

namespace kedge {
namespace {

constexpr int64_t kAlignment = 128;  // elements: 256 bytes of bf16, the best alignment for matrix kernels

int64_t padded(const ParameterSpec& spec) { return (spec.size() + kAlignment - 1) / kAlignment * kAlignment; }

constexpr uint64_t kInitStream = 0x1417;

// Normal draws from the stream, in pieces: those of a complete embedding would take as much memory as the embedding.
void fill_normal(const Tensor& values, const Random& random, double range) {
  constexpr int64_t kPiece = int64_t{1} << 20U;
  const Tensor flat = values.view({-1});
  const Tensor draws = at::empty({std::min(kPiece, flat.numel())}, at::kFloat);
  float* out = draws.mutable_data_ptr<float>();
  for (int64_t first = 0; first < flat.numel(); first += kPiece) {
    const int64_t count = std::min(kPiece, flat.numel() - first);
    at::parallel_for(0, count, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<float>(random.normal(static_cast<uint64_t>(first + i)) * range);
    });
    flat.narrow(0, first, count).copy_(draws.narrow(0, 0, count));
  }
}

}  // namespace

int64_t flat_size(const std::vector<ParameterSpec>& specs) {
  int64_t size = 0;
  for (const ParameterSpec& spec : specs) size += padded(spec);
  return size;
}

Parameters::Parameters(const std::vector<ParameterSpec>& specs, const StorageOptions& options) : specs_(specs), options_(options) {
  std::vector<int64_t> begins(specs_.size());
  int64_t end = 0;
  for (const bool decays : {true, false}) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].decays != decays) continue;
      begins[i] = end;
      num_elements_ += specs_[i].size();
      end += padded(specs_[i]);
    }
    if (decays) num_decaying_ = end;
  }
  const auto floats = at::TensorOptions(options_.device).dtype(at::kFloat);
  flat_ = at::zeros({end}, floats.dtype(options_.dtype));
  flat_master_ = options_.trainable && options_.dtype != at::kFloat ? at::zeros({end}, floats) : flat_;
  if (options_.trainable) flat_gradient_ = at::zeros({end}, floats);
  const auto slice = [&](const Tensor& flat, size_t i) {
    return flat.defined() ? flat.narrow(0, begins[i], specs_[i].size()).view(specs_[i].shape) : Tensor();
  };
  for (size_t i = 0; i < specs_.size(); ++i) {
    values_.push_back(slice(flat_, i));
    masters_.push_back(slice(flat_master_, i));
    gradients_.push_back(slice(flat_gradient_, i));
  }
}

ScoreView ScoreView::of(const Parameters& parameters, int weight, int bias) {
  if (bias < 0) return {parameters.value(weight), {}, parameters.gradient(weight), {}};
  return {parameters.value(weight), parameters.value(bias), parameters.gradient(weight), parameters.gradient(bias)};
}

void Parameters::publish() {
  if (!flat_.is_same(flat_master_)) flat_.copy_(flat_master_);
}

void Parameters::initialise(int parameter, uint64_t seed, double normal_range) {
  const auto place = static_cast<size_t>(parameter);
  const ParameterSpec& spec = specs_[place];
  switch (spec.init) {
    case ParameterSpec::Init::ones:
      masters_[place].fill_(1);
      break;
    case ParameterSpec::Init::zeros:
      masters_[place].zero_();
      break;
    case ParameterSpec::Init::normal:
      fill_normal(masters_[place], Random(seed, Random::stream_of({kInitStream, place})), normal_range);
      break;
  }
}

void Parameters::initialise(uint64_t seed, double normal_range) {
  for (size_t i = 0; i < specs_.size(); ++i) initialise(static_cast<int>(i), seed, normal_range);
  publish();
}

}  // namespace kedge
