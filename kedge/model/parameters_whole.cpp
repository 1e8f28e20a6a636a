// The complete model behind what a rank holds of it: the parts of Parameters that put it together, to be saved or looked at.
#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/model/parameters.h"

namespace kedge {
namespace {

Tensor place_of(const Tensor& whole, const ParameterPart& part, const ParameterPart::Rows& range) {
  const Tensor rows = whole.narrow(0, range.whole, range.count);
  return whole.dim() < 2 ? rows : rows.narrow(1, part.columns.begin, part.columns.end - part.columns.begin);
}

}  // namespace

std::vector<std::pair<int, int64_t>> Parameters::places_in(size_t bucket) const {
  const std::vector<int64_t> begins = flat_begins(specs_);
  const Share range = exchange_.layout().bucket(bucket);
  std::vector<std::pair<int, int64_t>> places;
  for (size_t i = 0; i < specs_.size(); ++i)
    if (begins[i] >= range.begin && begins[i] < range.end) places.emplace_back(static_cast<int>(i), begins[i] - range.begin);
  return places;
}

// From the own part of it, which may be all of it.
Tensor Parameters::whole_bucket(size_t bucket, const Tensor& own) const {
  if (updates_all()) return own;
  Tensor whole = at::empty({length(exchange_.layout().bucket(bucket))}, own.options());
  exchange_.gather(bucket, own, whole);
  return whole;
}

Tensor Parameters::join(int parameter, const Tensor& own) const {
  if (!is_split() || part(parameter).rows[0].sharers == options_.tensor.size()) return own;
  const ParameterSpec& spec = whole_specs_[static_cast<size_t>(parameter)];
  std::vector<std::vector<int64_t>> shapes;
  for (const std::vector<ParameterPart>& parts : parts_) {
    const ParameterPart& its = parts[static_cast<size_t>(parameter)];
    shapes.push_back({its.num_rows()});
    if (spec.shape.size() > 1) shapes.back().push_back(its.columns.end - its.columns.begin);
  }
  const std::vector<Tensor> all = options_.tensor.gather(own, shapes);
  Tensor whole = at::empty(spec.shape, own.options());
  for (int rank = 0; rank < options_.tensor.size(); ++rank)
    for (const ParameterPart& its = part(parameter, rank); const ParameterPart::Rows& range : its.rows)
      place_of(whole, its, range).copy_(all[static_cast<size_t>(rank)].narrow(0, range.own, range.count));
  return whole;
}

void Parameters::visit_masters(const std::function<void(int parameter, const Tensor& master)>& visit) const {
  for (size_t b = 0; b < own_parts_.size(); ++b) {
    const Tensor bucket = flat_master_.defined() ? Tensor() : whole_bucket(b, own_parts_[b].master);
    for (const auto& [parameter, begin] : places_in(b)) {
      const ParameterSpec& spec = specs_[static_cast<size_t>(parameter)];
      visit(parameter, join(parameter, bucket.defined() ? bucket.narrow(0, begin, spec.size()).view(spec.shape)
                                                        : masters_[static_cast<size_t>(parameter)]));
    }
  }
}

std::vector<Tensor> Parameters::own_masters() const {
  std::vector<Tensor> masters;
  for (const OwnPart& part : own_parts_) masters.push_back(part.master);
  return masters;
}

std::vector<FlatRow> Parameters::rows_to_save(const std::vector<Tensor>& own) const {
  std::vector<FlatRow> rows;
  if (!is_split()) {
    for (size_t b = 0; b < own.size(); ++b) rows.push_back({own_parts_[b].range.begin, own[b]});
    return rows;
  }
  const std::vector<int64_t> begins = flat_begins(whole_specs_);
  const ShardOptions& shards = options_.shards;
  const bool is_cut = shards.kind != Sharding::none;
  const int tensor_ranks = options_.tensor.size(), num_savers = tensor_ranks * (is_cut ? shards.shard.size() : 1);
  const int saver = options_.tensor.rank() + (is_cut ? shards.shard.rank() * tensor_ranks : 0);
  for (size_t b = 0; b < own.size(); ++b) {
    const Tensor bucket = whole_bucket(b, own[b]);
    for (const auto& [parameter, begin] : places_in(b)) {
      const auto place = static_cast<size_t>(parameter);
      const Tensor whole = join(parameter, bucket.narrow(0, begin, specs_[place].size()).view(specs_[place].shape)).view({-1});
      // The gap after it is zero.
      const int64_t size = flat_size({whole_specs_[place]});
      const Share share = share_of(size, saver, num_savers);
      const Tensor row = at::zeros({length(share)}, whole.options().device(at::kCPU));
      const int64_t count = std::min(share.end, whole.numel()) - share.begin;
      if (count > 0) row.narrow(0, 0, count).copy_(whole.narrow(0, share.begin, count));
      rows.push_back({begins[place] + share.begin, row});
    }
  }
  return rows;
}

void Parameters::restore_rows(const std::vector<Tensor>& own, at::ScalarType stored, const RowReader& read) const {
  const auto row_of = [&](int64_t begin, int64_t count) {
    FlatRow row{begin, at::empty({count}, stored)};
    read(row);
    return row.values;
  };
  if (!is_split()) {
    for (size_t b = 0; b < own.size(); ++b)
      if (own[b].scalar_type() == stored) {
        read({own_parts_[b].range.begin, own[b]});
      } else {
        own[b].copy_(row_of(own_parts_[b].range.begin, own[b].numel()));
      }
    return;
  }
  const std::vector<int64_t> begins = flat_begins(whole_specs_);
  for (size_t b = 0; b < own.size(); ++b) {
    const Tensor bucket = at::zeros({length(exchange_.layout().bucket(b))}, stored);
    for (const auto& [parameter, begin] : places_in(b)) {
      const auto place = static_cast<size_t>(parameter);
      const ParameterSpec &spec = specs_[place], &whole = whole_specs_[place];
      const Tensor to = bucket.narrow(0, begin, spec.size()).view(spec.shape);
      const int64_t width = whole.size() / whole.shape[0];
      for (const ParameterPart& its = part(parameter); const ParameterPart::Rows& range : its.rows) {
        std::vector<int64_t> shape = whole.shape;
        shape[0] = range.count;
        const Tensor rows = row_of(begins[place] + range.whole * width, range.count * width).view(shape);
        to.narrow(0, range.own, range.count).copy_(place_of(rows, its, {0, 0, range.count}));
      }
    }
    own[b].copy_(bucket.narrow(0, own_parts_[b].range.begin - exchange_.layout().bucket(b).begin, own[b].numel()));
  }
}

}  // namespace kedge
