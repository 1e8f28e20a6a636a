#pragma once
// Which rank holds which elements of a model's flat buffers. Pure data: independent of tensors and of transports.
#include <array>
#include <cstdint>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/dist/partition.h"

namespace kedge {

// What the ranks that train one model share among them instead of each holding all of it.
enum class Sharding {
  none,       // nothing
  optimizer,  // moments and master weights (ZeRO-1)
  gradients,  // gradients too (ZeRO-2)
  all         // and the weights themselves, gathered layer by layer (ZeRO-3)
};
constexpr auto enum_names(Sharding) {
  return std::array<EnumName<Sharding>, 4>{
      {{"none", Sharding::none}, {"optimizer", Sharding::optimizer}, {"gradients", Sharding::gradients}, {"all", Sharding::all}}};
}

// How gradients are summed: always in rank order, so that a run has the same bits whatever is sharded and whatever the network; or in the
// order that is the fastest.
enum class Collectives { ordered, fast };
constexpr auto enum_names(Collectives) {
  return std::array<EnumName<Collectives>, 2>{{{"ordered", Collectives::ordered}, {"fast", Collectives::fast}}};
}

// A flat buffer in buckets, which are gathered and reduced one at a time. Each bucket is cut over the ranks between leaves.
class ShardLayout {
 public:
  // Elements that are never cut. Norms are summed leaf by leaf, so that they do not depend on the cut.
  static constexpr int64_t kLeaf = 2048;

  ShardLayout() = default;
  // ends[b] is where bucket b ends and the next one begins; the first begins at 0.
  ShardLayout(std::vector<int64_t> ends, int num_ranks);

  [[nodiscard]] size_t num_buckets() const { return ends_.size(); }
  [[nodiscard]] int num_ranks() const { return num_ranks_; }
  [[nodiscard]] int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  [[nodiscard]] Share bucket(size_t index) const;
  // A rank's part of it; empty where there are fewer leaves than ranks.
  [[nodiscard]] Share part(size_t bucket, int rank) const;
  // The elements a rank holds in all buckets, and in those before one.
  [[nodiscard]] int64_t own_size(int rank) const { return own_begin(num_buckets(), rank); }
  [[nodiscard]] int64_t own_begin(size_t bucket, int rank) const;

 private:
  std::vector<int64_t> ends_;
  int num_ranks_ = 1;
};

[[nodiscard]] inline int64_t length(const Share& share) { return share.end - share.begin; }

}  // namespace kedge
