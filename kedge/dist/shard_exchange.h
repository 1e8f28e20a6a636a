#pragma once
// Gathers and sums the buckets of a sharded buffer. The ranks that train one model form a grid: those of a shard group hold different
// parts, those of a replica group the same ones. Calls are not compared between ranks: they follow from the model, which is the same
// everywhere.
#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"
#include "kedge/dist/shard_layout.h"

namespace kedge {

struct ShardOptions {
  Sharding kind = Sharding::none;
  Group shard = Group::single(), replicas = Group::single();
  Collectives collectives = Collectives::ordered;

  [[nodiscard]] int num_ranks() const { return shard.size() * replicas.size(); }
  [[nodiscard]] bool is_first() const { return shard.rank() == 0 && replicas.rank() == 0; }
};

class ShardExchange {
 public:
  // Buckets are summed in pieces of at most so many elements, which is all the memory that it takes.
  static constexpr int64_t kPieceElements = int64_t{1} << 25U;

  ShardExchange(ShardOptions options, ShardLayout layout);

  [[nodiscard]] const ShardOptions& options() const { return options_; }
  [[nodiscard]] const ShardLayout& layout() const { return layout_; }
  [[nodiscard]] Share own_part(size_t bucket) const { return layout_.part(bucket, options_.shard.rank()); }

  // Every rank's part into the complete bucket; `own` may be its part of it.
  void gather(size_t bucket, const Tensor& own, const Tensor& whole) const;
  // Adds the sum over all ranks of this rank's part of `whole` to `own`. Ordered: first the ranks of a shard group in their order, then the
  // groups in theirs. Fast: those of a group in the transport's order.
  void reduce(size_t bucket, const Tensor& whole, const Tensor& own) const;

 private:
  [[nodiscard]] std::vector<Tensor> parts_of(size_t bucket, const Tensor& whole) const;

  ShardOptions options_;
  ShardLayout layout_;
};

}  // namespace kedge
