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

// The factors of places, which are counted from 1 here. Overwrites `places`, int64.
Tensor factors_of(Tensor places) {
  places.mul_(static_cast<int64_t>(kPlaceStep));
  places.bitwise_xor_(places.bitwise_right_shift(at::Scalar(int64_t{kPlaceShift})).bitwise_and_(at::Scalar(kHalf)));
  return places.mul_(static_cast<int64_t>(kPlaceSpread)).bitwise_or_(at::Scalar(int64_t{1}));
}

}  // namespace

uint64_t tensor_bit_sum(const Tensor& rows, int64_t elements_at_a_time, int64_t first, int64_t step) {
  const NoGrad no_grad;
  const at::TensorOptions places = at::TensorOptions().dtype(at::kLong).device(rows.device());
  const Tensor words = rows.view(at::kInt), columns = at::arange(first + 1, first + 1 + rows.size(1), places);
  Tensor sum = at::zeros({}, places);
  const int64_t rows_at_a_time = std::max<int64_t>(1, elements_at_a_time / rows.size(1));
  for (int64_t begin = 0; begin < rows.size(0); begin += rows_at_a_time) {
    const int64_t end = std::min(rows.size(0), begin + rows_at_a_time);
    Tensor products = words.slice(0, begin, end).to(at::kLong).bitwise_and_(at::Scalar(kHalf));
    sum += products.mul_(factors_of(at::arange(begin, end, places).mul_(step).unsqueeze(1) + columns)).sum();
  }
  return static_cast<uint64_t>(sum.item<int64_t>());
}

uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time, int64_t first) {
  const int64_t width = std::min(elements_at_a_time, weights.numel()), whole = width == 0 ? 0 : weights.numel() / width * width;
  if (width == 0) return 0;
  const uint64_t sum = tensor_bit_sum(weights.narrow(0, 0, whole).view({-1, width}), width, first, width);
  return whole == weights.numel()
             ? sum
             : sum + tensor_bit_sum(weights.narrow(0, whole, weights.numel() - whole).unsqueeze(0), width, first + whole, 0);
}

namespace {

constexpr int64_t kAtATime = int64_t{1} << 22U;  // 160 MiB

uint64_t sum_from(const Tensor& weights, int64_t first) {
  return weights.is_cpu() ? host_bit_sum(weights, first) : tensor_bit_sum(weights, kAtATime, first);
}

}  // namespace

std::string weights_hash(const Tensor& weights) {
  ensure(weights.scalar_type() == at::kFloat && weights.dim() == 1 && weights.is_contiguous(), "weights to hash must be one row of fp32");
  return bit_hash_text(sum_from(weights.detach(), 0), static_cast<uint64_t>(weights.numel() * kElementSize));
}

namespace {

// Of complete rows of a matrix whose columns are cut: they are apart in the complete one. On a GPU a call for each would take seconds.
uint64_t sum_of_rows(const Tensor& rows, int64_t first, int64_t whole_width) {
  if (!rows.is_cpu()) return tensor_bit_sum(rows, kAtATime, first, whole_width);
  uint64_t sum = 0;
  for (int64_t row = 0; row < rows.size(0); ++row) sum += host_bit_sum(rows[row], first + row * whole_width);
  return sum;
}

// Rows of a rank's flat weights and where the complete model has them: rows of a part of the columns lie apart there.
struct SplitRows {
  int64_t begin, width, whole_begin, whole_width;

  [[nodiscard]] int64_t place_of(int64_t at) const { return whole_begin + (at - begin) / width * whole_width + (at - begin) % width; }
};

// The sum of the elements from `first` to `last`, which may begin and end within a row; `weights` begin with the element `origin`.
uint64_t sum_between(int64_t first, int64_t last, const SplitRows& rows, const Tensor& weights, int64_t origin) {
  const auto piece = [&](int64_t from, int64_t to) { return weights.narrow(0, from - origin, to - from); };
  if (first >= last) return 0;
  if (rows.width == rows.whole_width) return sum_from(piece(first, last), rows.place_of(first));
  const int64_t begun = (first - rows.begin) % rows.width;  // of the row in which `first` is
  const int64_t head = begun == 0 ? first : std::min(first + rows.width - begun, last),
                tail = head + (last - head) / rows.width * rows.width;
  uint64_t sum = 0;
  if (first < head) sum += sum_from(piece(first, head), rows.place_of(first));
  if (head < tail) sum += sum_of_rows(piece(head, tail).view({-1, rows.width}), rows.place_of(head), rows.whole_width);
  if (tail < last) sum += sum_from(piece(tail, last), rows.place_of(tail));
  return sum;
}

// Of a part of this rank's flat buffer that begins at `origin`: the sum of its elements by their places in the complete model, of those
// that no tensor rank before this one has.
uint64_t split_sum(const Parameters& parameters, const Tensor& weights, int64_t origin) {
  const std::vector<int64_t> own = flat_begins(parameters.specs()), whole = flat_begins(parameters.whole_specs());
  uint64_t sum = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const ParameterPart& part = parameters.part(static_cast<int>(i));
    const ParameterSpec& complete = parameters.whole_specs()[i];
    const int64_t width = part.columns.end - part.columns.begin, whole_width = complete.size() / complete.shape[0];
    for (const ParameterPart::Rows& rows : part.rows) {
      if (parameters.options().tensor.rank() % rows.sharers != 0) continue;
      const SplitRows places{own[i] + rows.own * width, width, whole[i] + rows.whole * whole_width + part.columns.begin, whole_width};
      const int64_t end = places.begin + rows.count * width;
      sum += sum_between(std::max(places.begin, origin), std::min(end, origin + weights.numel()), places, weights, origin);
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
