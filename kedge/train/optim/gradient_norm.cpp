#include "kedge/train/optim/gradient_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "kedge/core/autograd.h"
#include "kedge/train/optim/cuda_leaf_sums.h"

namespace kedge {
namespace {

constexpr int64_t kLeaf = ShardLayout::kLeaf;

// Eight chains, so that the loop can use vector units, added up in one order.
double leaf_sum(const float* values, int64_t count) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t lane = 0; lane < sums.size(); ++lane) {
      const auto value = static_cast<double>(values[i + static_cast<int64_t>(lane)]);
      sums[lane] += value * value;  // exact in fp64, so that fused or not it is the same
    }
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The elements of this rank's flat buffers that a tensor rank before it has too.
std::vector<Share> counted_elsewhere(const Parameters& parameters) {
  std::vector<Share> ranges;
  if (!parameters.is_split()) return ranges;
  const std::vector<int64_t> begins = flat_begins(parameters.specs());
  for (size_t i = 0; i < begins.size(); ++i) {
    const ParameterSpec& spec = parameters.specs()[i];
    const int64_t width = spec.size() / spec.shape[0];
    for (const ParameterPart::Rows& rows : parameters.part(static_cast<int>(i)).rows)
      if (parameters.options().tensor.rank() % rows.sharers != 0)
        ranges.push_back({begins[i] + rows.own * width, begins[i] + (rows.own + rows.count) * width});
  }
  return ranges;
}

// The part's gradients, with zeros in those ranges: zeros keep a sum's bits, so that these do not depend on how the part is cut.
Tensor counted_gradients(const Parameters::OwnPart& part, const std::vector<Share>& elsewhere) {
  Tensor gradient = part.gradient;
  for (const Share& range : elsewhere) {
    const int64_t first = std::max(range.begin, part.range.begin), last = std::min(range.end, part.range.end);
    if (first >= last) continue;
    if (gradient.is_same(part.gradient)) gradient = part.gradient.clone();
    gradient.narrow(0, first - part.range.begin, last - first).zero_();
  }
  return gradient;
}

// Of this rank's parts, one after the other, as bytes.
std::string own_leaf_sums(const Parameters& parameters) {
  std::string bytes;
  const std::vector<Share> elsewhere = counted_elsewhere(parameters);
  for (const Parameters::OwnPart& part : parameters.own_parts()) {
    const Tensor sums = leaf_sums(counted_gradients(part, elsewhere)).to(at::kCPU);
    bytes.append(static_cast<const char*>(sums.const_data_ptr()), sums.nbytes());
  }
  return bytes;
}

double next_sum(std::string_view& bytes) {
  double sum = 0;
  std::memcpy(&sum, bytes.data(), sizeof sum);
  bytes.remove_prefix(sizeof sum);
  return sum;
}

}  // namespace

Tensor leaf_sums(const Tensor& row) {
  if (row.is_cuda()) return cuda::leaf_sums(row, kLeaf);
  const int64_t size = row.numel(), num_leaves = (size + kLeaf - 1) / kLeaf;
  const Tensor sums = at::empty({num_leaves}, at::kDouble);
  const auto* values = row.const_data_ptr<float>();
  auto* out = sums.mutable_data_ptr<double>();
  at::parallel_for(0, num_leaves, 16, [&](int64_t begin, int64_t end) {
    for (int64_t leaf = begin; leaf < end; ++leaf) out[leaf] = leaf_sum(values + leaf * kLeaf, std::min(kLeaf, size - leaf * kLeaf));
  });
  return sums;
}

double gradient_norm(const Parameters& parameters) {
  const NoGrad no_grad;
  const ShardOptions& shards = parameters.options().shards;
  // On a GPU a rank that is alone need not send its leaves' sums to the host.
  if (shards.num_ranks() == 1 && !parameters.is_split() && parameters.flat_gradient().is_cuda())
    return at::linalg_vector_norm(parameters.flat_gradient()).item<double>();
  const std::string own = own_leaf_sums(parameters);
  const bool is_cut = shards.kind != Sharding::none && shards.num_ranks() > 1;
  const std::vector<std::string> all = is_cut ? shards.shard.all_gather(own) : std::vector{own};
  std::vector<std::string_view> rest(all.begin(), all.end());
  // By bucket, and in a bucket by rank: the order of the flat buffer.
  const ShardLayout& layout = parameters.layout();
  double sum = 0;
  for (size_t bucket = 0; bucket < layout.num_buckets(); ++bucket)
    for (size_t rank = 0; rank < rest.size(); ++rank) {
      const int64_t size = length(is_cut ? layout.part(bucket, static_cast<int>(rank)) : layout.bucket(bucket));
      for (int64_t leaf = 0; leaf < (size + kLeaf - 1) / kLeaf; ++leaf) sum += next_sum(rest[rank]);
    }
  std::vector<double> sums(static_cast<size_t>(parameters.options().tensor.size()), 0);
  sums[static_cast<size_t>(parameters.options().tensor.rank())] = sum;
  if (parameters.is_split()) parameters.options().tensor.group().all_reduce(std::span<double>(sums), Reduce::sum);
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

}  // namespace kedge
