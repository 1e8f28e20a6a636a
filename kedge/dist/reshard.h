#pragma once
// Weights from one layout over a job's ranks to another: which rank gets what from whom, as data, and the transfer itself.
#include <cstdint>
#include <functional>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"
#include "kedge/dist/partition.h"

namespace kedge {

// A rectangle of a parameter of the complete model. A vector has one column.
struct WeightBlock {
  int64_t parameter = 0;
  Share rows, columns;

  friend bool operator==(const WeightBlock&, const WeightBlock&) = default;
  [[nodiscard]] int64_t size() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }
  [[nodiscard]] bool contains(const WeightBlock& other) const;
};
// Of every rank.
using BlocksOfRanks = std::vector<std::vector<WeightBlock>>;

struct WeightMove {
  int from = 0, to = 0;
  WeightBlock block;  // inside one block that `from` has, and one that `to` wants
};

// All that every rank wants, each element once: from itself where it has it, else from the nearest rank that does. Ordered by parameter.
// Error if nobody has something that is wanted.
[[nodiscard]] std::vector<WeightMove> plan_reshard(const BlocksOfRanks& have, const BlocksOfRanks& want);

// The same in rounds in which no rank sends to others, or receives, more elements than this, unless a single row is longer. Moves are cut
// between rows.
[[nodiscard]] std::vector<std::vector<WeightMove>> reshard_rounds(const std::vector<WeightMove>& moves, int num_ranks, int64_t most);

// Elements.
struct ReshardTraffic {
  int64_t sent = 0, received = 0;  // to and from other ranks
  int64_t copied = 0;              // that the rank had itself
};
[[nodiscard]] ReshardTraffic reshard_traffic(const std::vector<WeightMove>& moves, int rank);

// The plan between what the ranks of a group have and want. Calls are collective.
class Reshard {
 public:
  static constexpr int64_t kRoundElements = int64_t{1} << 25U;  // memory: as many are on their way out, and in

  Reshard(Group ranks, const std::vector<WeightBlock>& have, const std::vector<WeightBlock>& want);

  [[nodiscard]] const ReshardTraffic& traffic() const { return traffic_; }

  // Views [rows, columns] of what this rank has, and of where it wants it, all of one type and on one device.
  using View = std::function<Tensor(const WeightBlock& block)>;
  void run(const View& have, const View& want, const at::TensorOptions& options) const;

 private:
  Group ranks_;
  std::vector<std::vector<WeightMove>> rounds_;  // only moves from or to this rank
  ReshardTraffic traffic_;
};

}  // namespace kedge
