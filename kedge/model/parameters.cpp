#include "kedge/model/parameters.h"

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/random.h"
#include "kedge/model/bucket_memory.h"

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

Tensor columns_of(const Tensor& rows, const ParameterPart& part) {
  return rows.dim() < 2 ? rows : rows.narrow(1, part.columns.begin, part.columns.end - part.columns.begin);
}

int64_t size_of_decaying(const std::vector<ParameterSpec>& specs) {
  int64_t size = 0;
  for (const ParameterSpec& spec : specs)
    if (spec.decays) size += padded(spec);
  return size;
}

}  // namespace

int64_t flat_size(const std::vector<ParameterSpec>& specs) {
  int64_t size = 0;
  for (const ParameterSpec& spec : specs) size += padded(spec);
  return size;
}

std::vector<int64_t> flat_begins(const std::vector<ParameterSpec>& specs) {
  std::vector<int64_t> begins(specs.size());
  int64_t end = 0;
  for (const bool decays : {true, false})
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].decays != decays) continue;
      begins[i] = end;
      end += padded(specs[i]);
    }
  return begins;
}

ShardLayout shard_layout(const std::vector<ParameterSpec>& specs, int shard_ranks, int num_ranks) {
  std::vector<int64_t> ends;
  int64_t end = 0, layer = 0;
  for (const ParameterSpec& spec : specs) {
    if (!spec.decays) continue;
    if (ends.empty() || (num_ranks > 1 && spec.layer != layer)) ends.push_back(end);
    layer = spec.layer;
    end += padded(spec);
    ends.back() = end;
  }
  if (flat_size(specs) > end) ends.push_back(flat_size(specs));
  return {ends, shard_ranks};
}

Parameters::Parameters(const std::vector<ParameterSpec>& whole, const StorageOptions& options,
                       std::vector<std::vector<ParameterPart>> parts)
    : whole_specs_(whole),
      parts_(std::move(parts)),
      specs_(parts_.empty() ? whole : split_specs(whole, parts_[static_cast<size_t>(options.tensor.rank())])),
      options_(options),
      exchange_(options.shards, shard_layout(specs_, options.shards.shard.size(), options.shards.num_ranks())),
      whole_size_(flat_size(whole)),
      side_(options.device) {
  ensure(!is_split() || std::ssize(parts_) == options_.tensor.size(), "parts of ", parts_.size(), " tensor ranks, of ",
         options_.tensor.size());
  num_decaying_ = size_of_decaying(specs_);
  for (const ParameterSpec& spec : whole_specs_) num_elements_ += spec.size();
  const bool is_shared = options_.shards.num_ranks() > 1;
  cuts_weights_ = is_shared && options_.shards.kind == Sharding::all;
  cuts_gradients_ = is_shared && options_.trainable && options_.shards.kind >= Sharding::gradients;
  ensure(!options_.comes_and_goes || (!options_.trainable && !cuts_weights_), "only complete weights that do not train can come and go");
  allocate();
  make_slices();
  list_own_parts();
}

void Parameters::allocate() {
  const auto floats = at::TensorOptions(options_.device).dtype(at::kFloat);
  const ShardOptions& shards = options_.shards;
  const bool is_shared = shards.num_ranks() > 1, cuts_masters = is_shared && shards.kind != Sharding::none;
  const bool has_masters = options_.trainable && options_.dtype != at::kFloat;
  const int64_t own_size = exchange_.layout().own_size(shards.shard.rank());
  if (cuts_weights_) {
    own_values_ = at::zeros({own_size}, floats.dtype(options_.dtype));
  } else {
    flat_ = options_.comes_and_goes ? row_without_memory(size(), floats.dtype(options_.dtype))
                                    : at::zeros({size()}, floats.dtype(options_.dtype));
  }
  if (!has_masters) {
    flat_master_ = flat_;
  } else if (cuts_masters) {
    own_masters_ = at::zeros({own_size}, floats);
  } else {
    flat_master_ = at::zeros({size()}, floats);
  }
  value_buckets_ = bucket_rows(flat_, options_.dtype, cuts_weights_);
  if (!options_.trainable) return;
  if (is_shared) own_sums_ = at::zeros({own_size}, floats);
  if (!cuts_gradients_) flat_gradient_ = at::zeros({size()}, floats);
  gradient_buckets_ = bucket_rows(flat_gradient_, at::kFloat, cuts_gradients_);
}

// Slices of the flat buffer, or rows of their own whose memory comes and goes.
std::vector<Tensor> Parameters::bucket_rows(const Tensor& flat, at::ScalarType dtype, bool come_and_go) const {
  std::vector<Tensor> rows;
  for (size_t b = 0; b < exchange_.layout().num_buckets(); ++b) {
    const Share bucket = exchange_.layout().bucket(b);
    rows.push_back(come_and_go ? row_without_memory(length(bucket), at::TensorOptions(options_.device).dtype(dtype))
                               : flat.narrow(0, bucket.begin, length(bucket)));
  }
  return rows;
}

void Parameters::make_slices() {
  const std::vector<int64_t> begins = flat_begins(specs_);
  const ShardLayout& layout = exchange_.layout();
  for (size_t i = 0; i < specs_.size(); ++i) {
    size_t b = 0;
    while (b + 1 < layout.num_buckets() && begins[i] >= layout.bucket(b).end) ++b;
    const auto slice = [&](const Tensor& row, int64_t row_begin) {
      return row.defined() ? row.narrow(0, begins[i] - row_begin, specs_[i].size()).view(specs_[i].shape) : Tensor();
    };
    const int64_t bucket_begin = layout.bucket(b).begin;
    values_.push_back(slice(value_buckets_[b], bucket_begin));
    masters_.push_back(slice(flat_master_, 0));
    gradients_.push_back(options_.trainable ? slice(gradient_buckets_[b], bucket_begin) : Tensor());
    if (!specs_[i].decays || specs_[i].layer < 0) continue;
    const auto layer = static_cast<size_t>(specs_[i].layer);
    if (layer_buckets_.size() <= layer) layer_buckets_.resize(layer + 1);
    layer_buckets_[layer] = b;
  }
}

Tensor Parameters::own_slice(const Tensor& own, const Tensor& flat, size_t bucket) const {
  const Share part = exchange_.own_part(bucket);
  if (own.defined()) return own.narrow(0, exchange_.layout().own_begin(bucket, options_.shards.shard.rank()), length(part));
  return flat.defined() ? flat.narrow(0, part.begin, length(part)) : Tensor();
}

void Parameters::list_own_parts() {
  for (size_t b = 0; b < exchange_.layout().num_buckets(); ++b) {
    if (updates_all()) {
      const Share all = exchange_.layout().bucket(b);
      const auto slice = [&](const Tensor& flat) { return flat.defined() ? flat.narrow(0, all.begin, length(all)) : Tensor(); };
      own_parts_.push_back({all, slice(flat_master_), slice(flat_), slice(flat_gradient_)});
      continue;
    }
    const Tensor value = own_slice(own_values_, flat_, b);
    const bool has_masters = options_.trainable && options_.dtype != at::kFloat;
    own_parts_.push_back({exchange_.own_part(b), has_masters ? own_slice(own_masters_, flat_master_, b) : value, value,
                          options_.trainable ? own_slice(own_sums_, {}, b) : Tensor()});
  }
}

bool Parameters::is_layer(size_t bucket) const {
  return std::find(layer_buckets_.begin(), layer_buckets_.end(), bucket) != layer_buckets_.end();
}

bool Parameters::is_copy() const {
  const ShardOptions& shards = options_.shards;
  return shards.replicas.rank() != 0 || (shards.kind == Sharding::none && shards.shard.rank() != 0);
}

const Tensor& Parameters::flat() const {
  ensure(flat_.defined(), "sharded weights are not in one buffer");
  return flat_;
}

const Tensor& Parameters::flat_master() const {
  ensure(flat_master_.defined(), "sharded master weights are not in one buffer");
  return flat_master_;
}

const ParameterPart& Parameters::part(int parameter, int tensor_rank) const {
  return parts_[static_cast<size_t>(tensor_rank)][static_cast<size_t>(parameter)];
}

std::vector<ParameterPart> Parameters::parts() const {
  return parts_.empty() ? std::vector<ParameterPart>() : parts_[static_cast<size_t>(options_.tensor.rank())];
}

void Parameters::take_values() {
  take_memory(flat_);
  ++placement_;
}

void Parameters::drop_values() { give_memory_back(flat_); }

const Tensor& Parameters::flat_gradient() const {
  ensure(flat_gradient_.defined() || !options_.trainable, "sharded gradients are not in one buffer");
  return flat_gradient_;
}

const Tensor& Parameters::master(int parameter) const {
  static_cast<void>(flat_master());
  return masters_[static_cast<size_t>(parameter)];
}

void Parameters::publish() {
  for (const OwnPart& part : own_parts_)
    if (part.master.data_ptr() != part.value.data_ptr()) part.value.copy_(part.master);
  share_values();
}

void Parameters::share_values() {
  ++version_;
  const ShardOptions& shards = options_.shards;
  if (shards.kind == Sharding::none || shards.num_ranks() == 1 || (!options_.trainable && !cuts_weights_)) return;
  for (size_t b = 0; b < value_buckets_.size(); ++b)
    if (keeps_value(b) || num_holders_ > 0) gather_value(b);
}

void Parameters::gather_value(size_t bucket) const {
  take_memory(value_buckets_[bucket]);
  exchange_.gather(bucket, own_parts_[bucket].value, value_buckets_[bucket]);
}

void Parameters::write_own_rows(int parameter, int64_t row, const Tensor& rows) {
  const auto place = static_cast<size_t>(parameter);
  if (flat_master_.defined()) {
    masters_[place].narrow(0, row, rows.size(0)).copy_(rows);
    return;
  }
  const ParameterSpec& spec = specs_[place];
  const Tensor given = rows.contiguous().view({-1});
  const int64_t begin = flat_begins(specs_)[place] + row * (spec.size() / spec.shape[0]);
  for (const OwnPart& part : own_parts_) {
    const int64_t first = std::max(begin, part.range.begin), last = std::min(begin + given.numel(), part.range.end);
    if (first < last) part.master.narrow(0, first - part.range.begin, last - first).copy_(given.narrow(0, first - begin, last - first));
  }
}

void Parameters::write_rows(int parameter, int64_t row, const Tensor& rows) {
  if (!is_split()) return write_own_rows(parameter, row, rows);
  const ParameterPart& own = part(parameter);
  for (const ParameterPart::Rows& range : own.rows) {
    const int64_t first = std::max(range.whole, row), last = std::min(range.whole + range.count, row + rows.size(0));
    if (first < last)
      write_own_rows(parameter, range.own + first - range.whole, columns_of(rows.narrow(0, first - row, last - first), own));
  }
}

void Parameters::initialise(int parameter, uint64_t seed, double normal_range) {
  const auto place = static_cast<size_t>(parameter);
  const ParameterSpec& spec = specs_[place];
  const Tensor drawn = has_whole_masters() ? masters_[place] : at::empty(spec.shape, at::kFloat);
  switch (spec.init) {
    case ParameterSpec::Init::ones:
      drawn.fill_(1);
      break;
    case ParameterSpec::Init::zeros:
      drawn.zero_();
      break;
    case ParameterSpec::Init::normal:
      fill_normal(drawn, Random(seed, Random::stream_of({kInitStream, place})), normal_range);
      break;
  }
  if (!has_whole_masters()) write_rows(parameter, 0, drawn);
}

void Parameters::initialise(uint64_t seed, double normal_range) {
  for (size_t i = 0; i < specs_.size(); ++i) initialise(static_cast<int>(i), seed, normal_range);
  publish();
}

ScoreView ScoreView::of(const Parameters& parameters, int weight, int bias) {
  if (bias < 0) return {parameters.value(weight), {}, parameters.gradient(weight), {}};
  return {parameters.value(weight), parameters.value(bias), parameters.gradient(weight), parameters.gradient(bias)};
}

}  // namespace kedge
