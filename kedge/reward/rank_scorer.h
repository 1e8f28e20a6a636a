#pragma once
// A reward model on the ranks of a server: rank 0 gets the rows, all compute them. Independent of requests.
#include <span>

#include "kedge/dist/mesh.h"
#include "kedge/dist/rank_orders.h"
#include "kedge/reward/reward_scorer.h"

namespace kedge {

// Not thread-safe. `scorer` must outlive it.
class RankScorer {
 public:
  // Rows are divided among `mesh.data`; the ranks of `mesh.tensor` compute the same ones together.
  RankScorer(const RewardScorer& scorer, const Mesh& mesh) : scorer_(scorer), orders_(mesh.world), data_(mesh.data) {}

  // Rank 0: as of the scorer.
  [[nodiscard]] Tensor score(std::span<const TokenIds> rows) const;
  void stop() const;  // the others return from follow()

  // The others: computes what rank 0 asks for until it stops. What fails is rank 0's error.
  void follow() const;

 private:
  [[nodiscard]] Tensor compute(std::span<const TokenIds> rows) const;

  const RewardScorer& scorer_;
  RankOrders orders_;
  Group data_;
};

}  // namespace kedge
