#include "kedge/model/stored_weights.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Stored elements: those of the rank's flat buffer in `range`, from `begin` on.
struct Stored {
  Share range;
  int64_t begin = 0;
};

ParameterPart all_of(const ParameterSpec& spec) {
  ParameterPart part;
  part.rows = {{0, 0, spec.shape[0], 1}};
  part.columns = {0, spec.size() / spec.shape[0]};
  return part;
}

// Elements [first, last) of a range of rows, in row order: part of a row, complete rows, part of a row.
void add_rectangles(int64_t parameter, const ParameterPart& part, const ParameterPart::Rows& rows, Share elements, int64_t begin,
                    std::vector<StoredBlock>& blocks) {
  const int64_t width = length(part.columns);
  const auto add = [&](int64_t first_row, int64_t num_rows, int64_t first_column, int64_t num_columns) {
    if (num_rows <= 0 || num_columns <= 0) return;
    const int64_t row = rows.whole + first_row, column = part.columns.begin + first_column;
    const int64_t place = begin + first_row * width + first_column - elements.begin;
    blocks.push_back({{parameter, {row, row + num_rows}, {column, column + num_columns}}, place, width});
  };
  int64_t first = elements.begin;
  if (const int64_t column = first % width; column != 0) {
    const int64_t count = std::min(width - column, elements.end - first);
    add(first / width, 1, column, count);
    first += count;
  }
  add(first / width, (elements.end - first) / width, 0, width);
  first += std::max<int64_t>(0, (elements.end - first) / width) * width;
  add(first / width, 1, 0, elements.end - first);
}

}  // namespace

std::vector<StoredBlock> stored_blocks(const std::vector<ParameterSpec>& whole, const StoredPlace& place) {
  const std::vector<ParameterSpec> own = place.parts.empty() ? whole : split_specs(whole, place.parts);
  std::vector<Stored> stored = {{{0, flat_size(own)}, 0}};
  if (place.is_cut) {
    const ShardLayout layout = shard_layout(own, place.shard_ranks, place.num_ranks);
    stored.clear();
    for (size_t b = 0; b < layout.num_buckets(); ++b)
      stored.push_back({layout.part(b, place.shard_rank), layout.own_begin(b, place.shard_rank)});
  }
  const std::vector<int64_t> begins = flat_begins(own);
  std::vector<StoredBlock> blocks;
  for (size_t i = 0; i < own.size(); ++i) {
    const ParameterPart part = place.parts.empty() ? all_of(whole[i]) : place.parts[i];
    const int64_t width = length(part.columns);
    for (const ParameterPart::Rows& rows : part.rows)
      for (const Stored& piece : stored) {
        const int64_t begin = begins[i] + rows.own * width;  // of these rows in the flat buffer
        const int64_t first = std::max(begin, piece.range.begin), last = std::min(begin + rows.count * width, piece.range.end);
        if (first < last)
          add_rectangles(static_cast<int64_t>(i), part, rows, {first - begin, last - begin}, piece.begin + first - piece.range.begin,
                         blocks);
      }
  }
  return blocks;
}

StoredWeights::StoredWeights(const Parameters& parameters) : parameters_(parameters), blocks_(parameters.specs().size()) {
  const ShardOptions& shards = parameters.options().shards;
  for (const StoredBlock& stored : stored_blocks(parameters.whole_specs(), {parameters.parts(), parameters.cuts_weights(),
                                                                            shards.shard.rank(), shards.shard.size(), shards.num_ranks()}))
    blocks_[static_cast<size_t>(stored.block.parameter)].push_back(stored);
}

std::vector<WeightBlock> StoredWeights::blocks() const {
  std::vector<WeightBlock> all;
  for (const std::vector<StoredBlock>& blocks : blocks_)
    for (const StoredBlock& stored : blocks) all.push_back(stored.block);
  return all;
}

Tensor StoredWeights::view(const WeightBlock& block) const {
  for (const StoredBlock& stored : blocks_[static_cast<size_t>(block.parameter)]) {
    if (!stored.block.contains(block)) continue;
    const int64_t begin =
        stored.begin + (block.rows.begin - stored.block.rows.begin) * stored.stride + block.columns.begin - stored.block.columns.begin;
    const Tensor& values = parameters_.stored_values();
    return values.as_strided({length(block.rows), length(block.columns)}, {stored.stride, 1}, values.storage_offset() + begin);
  }
  throw Error(str("parameter ", block.parameter, ": rows ", block.rows.begin, " to ", block.rows.end, " are not stored here"));
}

}  // namespace kedge
