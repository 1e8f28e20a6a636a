#include "kedge/dist/shard_layout.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {

ShardLayout::ShardLayout(std::vector<int64_t> ends, int num_ranks) : ends_(std::move(ends)), num_ranks_(num_ranks) {
  ensure(num_ranks >= 1 && std::is_sorted(ends_.begin(), ends_.end()), "buckets that do not follow each other");
}

Share ShardLayout::bucket(size_t index) const {
  ensure(index < ends_.size(), "bucket ", index, " of ", ends_.size());
  return {index == 0 ? 0 : ends_[index - 1], ends_[index]};
}

Share ShardLayout::part(size_t index, int rank) const {
  const Share all = bucket(index);
  const Share leaves = share_of((length(all) + kLeaf - 1) / kLeaf, rank, num_ranks_);
  return {std::min(all.begin + leaves.begin * kLeaf, all.end), std::min(all.begin + leaves.end * kLeaf, all.end)};
}

int64_t ShardLayout::own_begin(size_t bucket, int rank) const {
  int64_t size = 0;
  for (size_t before = 0; before < bucket; ++before) size += length(part(before, rank));
  return size;
}

}  // namespace kedge
