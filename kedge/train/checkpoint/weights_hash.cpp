#include "kedge/train/checkpoint/weights_hash.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"
#include "kedge/train/checkpoint/cuda_bit_sum.h"

namespace kedge {
namespace {

constexpr int64_t kElementSize = 4;

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

// What weights have added so far: those in host memory here, those on a GPU there, which is asked once, at the end.
class BitSum {
 public:
  // Complete rows, each of which begins `step` places after the one before.
  void add_rows(const Tensor& rows, int64_t first, int64_t step) {
    if (rows.is_cpu()) {
      for (int64_t row = 0; row < rows.size(0); ++row) here_ += host_bit_sum(rows[row], first + row * step);
    } else {
      if (!there_.defined()) there_ = at::zeros({}, at::TensorOptions().dtype(at::kLong).device(rows.device()));
      cuda::add_bit_sum(there_, rows, first, step);
    }
  }
  void add(const Tensor& weights, int64_t first) { add_rows(weights.unsqueeze(0), first, 0); }

  [[nodiscard]] uint64_t value() const { return here_ + (there_.defined() ? static_cast<uint64_t>(there_.item<int64_t>()) : 0); }

 private:
  uint64_t here_ = 0;
  Tensor there_;
};

}  // namespace

std::string weights_hash(const Tensor& weights) {
  ensure(weights.scalar_type() == at::kFloat && weights.dim() == 1 && weights.is_contiguous(), "weights to hash must be one row of fp32");
  BitSum sum;
  sum.add(weights.detach(), 0);
  return bit_hash_text(sum.value(), static_cast<uint64_t>(weights.numel() * kElementSize));
}

namespace {

// Rows of a rank's flat weights and where the complete model has them: rows of a part of the columns lie apart there.
struct SplitRows {
  int64_t begin, width, whole_begin, whole_width;

  [[nodiscard]] int64_t place_of(int64_t at) const { return whole_begin + (at - begin) / width * whole_width + (at - begin) % width; }
};

// Adds the elements from `first` to `last`, which may begin and end within a row; `weights` begin with the element `origin`.
void add_between(int64_t first, int64_t last, const SplitRows& rows, const Tensor& weights, int64_t origin, BitSum& sum) {
  const auto piece = [&](int64_t from, int64_t to) { return weights.narrow(0, from - origin, to - from); };
  if (first >= last) return;
  if (rows.width == rows.whole_width) return sum.add(piece(first, last), rows.place_of(first));
  const int64_t begun = (first - rows.begin) % rows.width;  // of the row in which `first` is
  const int64_t head = begun == 0 ? first : std::min(first + rows.width - begun, last),
                tail = head + (last - head) / rows.width * rows.width;
  if (first < head) sum.add(piece(first, head), rows.place_of(first));
  if (head < tail) sum.add_rows(piece(head, tail).view({-1, rows.width}), rows.place_of(head), rows.whole_width);
  if (tail < last) sum.add(piece(tail, last), rows.place_of(tail));
}

// Of a part of this rank's flat buffer that begins at `origin`: adds its elements by their places in the complete model, those that no
// tensor rank before this one has.
void add_split(const Parameters& parameters, const Tensor& weights, int64_t origin, BitSum& sum) {
  const std::vector<int64_t> own = flat_begins(parameters.specs()), whole = flat_begins(parameters.whole_specs());
  for (size_t i = 0; i < own.size(); ++i) {
    const ParameterPart& part = parameters.part(static_cast<int>(i));
    const ParameterSpec& complete = parameters.whole_specs()[i];
    const int64_t width = part.columns.end - part.columns.begin, whole_width = complete.size() / complete.shape[0];
    for (const ParameterPart::Rows& rows : part.rows) {
      if (parameters.options().tensor.rank() % rows.sharers != 0) continue;
      const SplitRows places{own[i] + rows.own * width, width, whole[i] + rows.whole * whole_width + part.columns.begin, whole_width};
      const int64_t end = places.begin + rows.count * width;
      add_between(std::max(places.begin, origin), std::min(end, origin + weights.numel()), places, weights, origin, sum);
    }
  }
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
  BitSum own;
  for (const Parameters::OwnPart& part : parameters.own_parts()) {
    const Tensor weights = part.master.detach();
    parameters.is_split() ? add_split(parameters, weights, part.range.begin, own) : own.add(weights, part.range.begin);
  }
  uint64_t sum = own.value();
  const ShardOptions& shards = parameters.options().shards;
  if (shards.kind != Sharding::none) sum = sum_over(shards.shard, sum);
  if (parameters.is_split()) sum = sum_over(parameters.options().tensor.group(), sum);
  return bit_hash_text(sum, static_cast<uint64_t>(parameters.whole_size() * kElementSize));
}

}  // namespace kedge
