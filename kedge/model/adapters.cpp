#include "kedge/model/adapters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/random.h"

namespace kedge {
namespace {

constexpr uint64_t kAdapterStream = 0xADA9;

AdapterHead shape_of(const ScoreView& head) {
  return {head.weight.defined() ? head.weight.sizes().vec() : std::vector<int64_t>(), head.bias.defined()};
}

TensorSplit split_of(const TensorRanks& ranks, int rank) { return {rank, ranks.size()}; }

std::vector<std::vector<ParameterPart>> parts_of_ranks(const std::vector<LinearSlice>& slices, const std::vector<ParameterSpec>& specs,
                                                       const TensorRanks& ranks, const SplitBase& base) {
  std::vector<std::vector<ParameterPart>> parts;
  for (int rank = 0; rank < ranks.size() && ranks.is_split(); ++rank)
    parts.push_back(adapter_parts(*base.config, *base.head, slices, specs, split_of(ranks, rank)));
  return parts;
}

// Where the slice's outputs begin among those that this rank has of the parameter.
int64_t own_row(const LinearSlice& slice, const SplitBase& base, const TensorRanks& ranks) {
  const auto parts = parameter_parts(*base.config, *base.head, split_of(ranks, ranks.rank()));
  for (const ParameterPart::Rows& rows : parts[static_cast<size_t>(slice.parameter)].rows)
    if (rows.whole + rows.count > slice.row && rows.whole < slice.row + slice.rows) return rows.own;
  throw Bug("a slice without rows of its parameter");
}

}  // namespace

Adapters::Adapters(const LoraConfig& config, std::vector<LinearSlice> slices, const StorageOptions& options, const ScoreView& head,
                   const SplitBase& base)
    : config_(config),
      slices_(std::move(slices)),
      score_(head.weight.defined() ? a_of(slices_.size()) : -1),
      score_bias_(head.bias.defined() ? score_ + 1 : -1),
      parameters_(adapter_specs(slices_, config.adapter_dim, shape_of(head)), options,
                  parts_of_ranks(slices_, adapter_specs(slices_, config.adapter_dim, shape_of(head)), options.tensor, base)) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    const LinearSlice& slice = slices_[i];
    AdapterView view{parameters_.value(a_of(i)),
                     parameters_.value(b_of(i)),
                     parameters_.gradient(a_of(i)),
                     parameters_.gradient(b_of(i)),
                     slice.row,
                     slice.rows,
                     config_.scale(),
                     config_.adapter_dropout,
                     i};
    if (parameters_.is_split()) {
      view.outputs = parameters_.part(b_of(i)).rows;
      view.num_outputs = slice.rows;
      view.row = own_row(slice, base, options.tensor);
      view.rows = view.b.size(0);
    }
    views_[slice.parameter].push_back(std::move(view));
  }
  if (score_ >= 0) parameters_.master(score_).copy_(head.weight);
  if (score_bias_ >= 0) parameters_.master(score_bias_).copy_(head.bias);
  parameters_.publish();
}

void Adapters::initialise(uint64_t seed) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    const std::vector<int64_t>& shape = parameters_.whole_specs()[static_cast<size_t>(a_of(i))].shape;
    const double range = std::sqrt(2.0 / static_cast<double>(shape[0] + shape[1]));
    const Random random(seed, Random::stream_of({kAdapterStream, i}));
    Tensor draws = at::empty(shape, at::kFloat);
    float* out = draws.mutable_data_ptr<float>();
    for (int64_t j = 0; j < draws.numel(); ++j) out[j] = static_cast<float>(random.normal(static_cast<uint64_t>(j)) * range);
    parameters_.write_rows(a_of(i), 0, draws);
    parameters_.master(b_of(i)).zero_();
  }
  parameters_.publish();
}

const std::vector<AdapterView>& Adapters::on(int base_parameter) const {
  static const std::vector<AdapterView> kNone;
  const auto found = views_.find(base_parameter);
  return enabled_ && found != views_.end() ? found->second : kNone;
}

const AdapterView& Adapters::view(size_t i) const {
  const std::vector<AdapterView>& views = views_.at(slices_[i].parameter);
  return *std::find_if(views.begin(), views.end(), [&](const AdapterView& view) { return view.place == i; });
}

}  // namespace kedge
