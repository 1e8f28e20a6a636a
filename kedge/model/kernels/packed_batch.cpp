#include "kedge/model/kernels/packed_batch.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

PackedBatch pack_rows(std::span<const std::vector<int32_t>> rows, at::Device device) {
  PackedBatch batch;
  int64_t num_tokens = 0;
  for (const auto& row : rows) {
    ensure(!row.empty(), "an empty row in a batch");
    batch.lengths.push_back(static_cast<int64_t>(row.size()));
    num_tokens += batch.lengths.back();
    batch.max_length = std::max(batch.max_length, batch.lengths.back());
  }
  ensure(num_tokens > 0, "an empty batch");
  batch.ids = at::empty({num_tokens}, at::kLong);
  batch.positions = at::empty({num_tokens}, at::kLong);
  batch.offsets = at::empty({batch.num_rows() + 1}, at::kInt);
  auto* ids = batch.ids.mutable_data_ptr<int64_t>();
  auto* positions = batch.positions.mutable_data_ptr<int64_t>();
  auto* offsets = batch.offsets.mutable_data_ptr<int32_t>();
  int64_t at = 0;
  *offsets++ = 0;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i, ++at) ids[at] = row[i], positions[at] = static_cast<int64_t>(i);
    *offsets++ = static_cast<int32_t>(at);
  }
  batch.ids = batch.ids.to(device);
  batch.positions = batch.positions.to(device);
  batch.offsets = batch.offsets.to(device);
  return batch;
}

std::vector<RowFamily> row_families(const PackedBatch& batch) {
  std::vector<RowFamily> families;
  int64_t start = 0;
  size_t row = 0;
  const auto next = [&]() -> RowSpan {
    const RowSpan span{start, batch.lengths[row++]};
    start += span.length;
    return span;
  };
  for (size_t prompt = 0; prompt < batch.shared.num_answers.size(); ++prompt) families.push_back({next()});
  for (size_t prompt = 0; prompt < batch.shared.num_answers.size(); ++prompt)
    for (int64_t i = 0; i < batch.shared.num_answers[prompt]; ++i) families[prompt].answers.push_back(next());
  while (row < batch.lengths.size()) families.push_back({next()});
  return families;
}

size_t rows_within(std::span<const std::vector<int32_t>> rows, int64_t max_tokens) {
  int64_t tokens = 0;
  for (size_t count = 0; count < rows.size(); ++count) {
    tokens += static_cast<int64_t>(rows[count].size());
    if (max_tokens > 0 && tokens > max_tokens) return std::max<size_t>(count, 1);
  }
  return rows.size();
}

PredictedTokens predicted_tokens(const PackedBatch& batch) {
  ensure(!batch.shares_prompts(), "whoever packs answers knows which tokens they predict");
  const int64_t count = batch.num_tokens() - batch.num_rows();
  Tensor places = at::empty({count}, at::kLong);
  auto* out = places.mutable_data_ptr<int64_t>();
  int64_t row_start = 0;
  for (const int64_t length : batch.lengths) {
    for (int64_t i = 0; i + 1 < length; ++i) *out++ = row_start + i;
    row_start += length;
  }
  places = places.to(batch.ids.device());
  return {places, batch.ids.index_select(0, places + 1)};
}

}  // namespace kedge
