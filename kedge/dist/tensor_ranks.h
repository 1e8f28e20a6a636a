#pragma once
// The ranks that compute every layer of one copy of a model together (tensor parallelism), and what their passes exchange. Calls are not
// compared between ranks: they follow from the model and the batch, which are the same on all of them.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"
#include "kedge/dist/peer_sums.h"

namespace kedge {

// A value, as Group is. One rank alone has nothing to exchange.
class TensorRanks {
 public:
  TensorRanks() : TensorRanks(Group::single()) {}
  explicit TensorRanks(Group group, std::shared_ptr<PeerSums> sums = nullptr) : group_(std::move(group)), sums_(std::move(sums)) {}

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] int size() const { return group_.size(); }
  [[nodiscard]] bool is_split() const { return size() > 1; }

  // Can what they exchange be recorded in a CUDA graph?
  [[nodiscard]] bool is_recordable() const;

  // In place: the sum of what all ranks have, in rank order, the same bits on each. bf16 is summed in fp32 and rounded once.
  void sum_(const Tensor& x) const;
  // The same over every `sharers` neighbouring ranks. All ranks call it.
  void sum_(const Tensor& x, int sharers) const;

  // [rows, own columns] of every rank side by side, cut as share_of(columns, ...) does.
  [[nodiscard]] Tensor gather_columns(const Tensor& x, int64_t columns) const;
  // Every rank's tensor, of the shapes that they have there. The own one is returned as it is.
  [[nodiscard]] std::vector<Tensor> gather(const Tensor& x, const std::vector<std::vector<int64_t>>& shapes) const;

  // Of every rank's [rows, columns] the sum, of this rank's rows alone, cut as share_of(rows, ...) does; some ranks may have none. The bits
  // that sum_() gives them. The sum does not share memory with x, unless there is one rank.
  [[nodiscard]] Tensor sum_rows(const Tensor& x) const;
  // The other way round: every rank's own rows of `rows`, one below the other.
  [[nodiscard]] Tensor gather_rows(const Tensor& x, int64_t rows) const;

 private:
  Group group_;
  std::shared_ptr<PeerSums> sums_;  // null: the group's transport alone
};

}  // namespace kedge
