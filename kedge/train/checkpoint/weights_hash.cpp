#include "kedge/train/checkpoint/weights_hash.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include "kedge/core/autograd.h"
#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr int64_t kElementSize = 4;
constexpr int64_t kHalf = 0xFFFFFFFF;  // the lower half of 64 bits: shifts of signed numbers fill up with the sign

uint64_t host_bit_sum(const Tensor& weights, int64_t first) {
  constexpr int64_t kPiece = int64_t{1} << 16U;
  const std::string_view bytes(static_cast<const char*>(weights.const_data_ptr()), weights.nbytes());
  std::atomic<uint64_t> sum = 0;
  at::parallel_for(0, weights.numel(), kPiece, [&](int64_t begin, int64_t end) {
    sum += bit_sum(bytes.substr(static_cast<size_t>(begin * kElementSize), static_cast<size_t>((end - begin) * kElementSize)),
                   static_cast<uint64_t>(first + begin));
  });
  return sum;
}

// The factors of places, [count] int64.
Tensor factors_of(int64_t begin, int64_t end, at::Device device) {
  Tensor factors = at::arange(begin + 1, end + 1, at::TensorOptions().dtype(at::kLong).device(device));
  factors.mul_(static_cast<int64_t>(kPlaceStep));
  factors.bitwise_xor_(factors.bitwise_right_shift(at::Scalar(int64_t{kPlaceShift})).bitwise_and_(at::Scalar(kHalf)));
  return factors.mul_(static_cast<int64_t>(kPlaceSpread)).bitwise_or_(at::Scalar(int64_t{1}));
}

}  // namespace

uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time, int64_t first) {
  const NoGrad no_grad;
  const Tensor words = weights.view(at::kInt);
  Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kLong).device(weights.device()));
  for (int64_t begin = 0; begin < weights.numel(); begin += elements_at_a_time) {
    const int64_t end = std::min(weights.numel(), begin + elements_at_a_time);
    Tensor products = words.slice(0, begin, end).to(at::kLong).bitwise_and_(at::Scalar(kHalf));
    sum += products.mul_(factors_of(first + begin, first + end, weights.device())).sum();
  }
  return static_cast<uint64_t>(sum.item<int64_t>());
}

namespace {

uint64_t sum_from(const Tensor& weights, int64_t first) {
  constexpr int64_t kAtATime = int64_t{1} << 22U;  // 160 MiB
  return weights.is_cpu() ? host_bit_sum(weights, first) : tensor_bit_sum(weights, kAtATime, first);
}

}  // namespace

std::string weights_hash(const Tensor& weights) {
  ensure(weights.scalar_type() == at::kFloat && weights.dim() == 1 && weights.is_contiguous(), "weights to hash must be one row of fp32");
  return bit_hash_text(sum_from(weights.detach(), 0), static_cast<uint64_t>(weights.numel() * kElementSize));
}

namespace {

// Elements [begin, end) of this rank's flat buffer are in `weights`, which begins at `origin`. Their sum by their places in the complete
// model, for those that no tensor rank before this one has.
uint64_t split_sum(const Parameters& parameters, const Tensor& weights, int64_t origin) {
  const std::vector<int64_t> own = flat_begins(parameters.specs()), whole = flat_begins(parameters.whole_specs());
  uint64_t sum = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const ParameterPart& part = parameters.part(static_cast<int>(i));
    const ParameterSpec& complete = parameters.whole_specs()[i];
    const int64_t width = part.columns.end - part.columns.begin, whole_width = complete.size() / complete.shape[0];
    for (const ParameterPart::Rows& rows : part.rows) {
      if (parameters.options().tensor.rank() % rows.sharers != 0) continue;
      const int64_t begin = own[i] + rows.own * width;
      const int64_t first = std::max(begin, origin), last = std::min(begin + rows.count * width, origin + weights.numel());
      // Rows of a matrix whose columns are cut are apart in the complete one.
      for (int64_t at = first; at < last;) {
        const int64_t row = (at - begin) / width, column = (at - begin) % width;
        const int64_t count = width == whole_width ? last - at : std::min(last - at, width - column);
        sum += sum_from(weights.narrow(0, at - origin, count), whole[i] + (rows.whole + row) * whole_width + part.columns.begin + column);
        at += count;
      }
    }
  }
  return sum;
}

uint64_t sum_over(const Group& group, uint64_t own) {
  uint64_t sum = 0;
  for (const std::string& one : group.all_gather(std::string_view(reinterpret_cast<const char*>(&own), sizeof own))) {
    uint64_t part = 0;
    std::memcpy(&part, one.data(), sizeof part);
    sum += part;
  }
  return sum;
}

}  // namespace

std::string weights_hash(const Parameters& parameters) {
  uint64_t sum = 0;
  for (const Parameters::OwnPart& part : parameters.own_parts()) {
    const Tensor weights = part.master.detach();
    sum += parameters.is_split() ? split_sum(parameters, weights, part.range.begin) : sum_from(weights, part.range.begin);
  }
  const ShardOptions& shards = parameters.options().shards;
  if (shards.kind != Sharding::none) sum = sum_over(shards.shard, sum);
  if (parameters.is_split()) sum = sum_over(parameters.options().tensor.group(), sum);
  return bit_hash_text(sum, static_cast<uint64_t>(parameters.whole_size() * kElementSize));
}

}  // namespace kedge
