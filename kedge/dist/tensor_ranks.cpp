#include "kedge/dist/tensor_ranks.h"

#include <functional>
#include <numeric>

#include <c10/core/DeviceGuard.h>

#include "kedge/dist/partition.h"
#include "kedge/dist/transport.h"

namespace kedge {
namespace {

// Up to so many elements every rank sends everything and adds it up itself: one round trip less.
constexpr int64_t kSmall = int64_t{1} << 15U;

// The ranks [first, first + count) of the transport; with the others nothing is exchanged.
struct Members {
  Transport& transport;
  int first, count;

  [[nodiscard]] bool has(int rank) const { return rank >= first && rank < first + count; }
};

void exchange(const Members& members, const std::function<Tensor(int member)>& to, const std::function<Tensor(int member)>& from,
              const Tensor& none) {
  std::vector<Tensor> sent, received;
  for (int rank = 0; rank < members.transport.size(); ++rank) {
    sent.push_back(members.has(rank) ? to(rank - members.first) : none);
    received.push_back(members.has(rank) ? from(rank - members.first) : none);
  }
  members.transport.exchange(sent, received);
}

void sum_at_once(const Members& members, const Tensor& row) {
  const Tensor received = at::empty({members.count, row.numel()}, row.options());
  exchange(
      members, [&](int) { return row; }, [&](int member) { return received[member]; }, row.narrow(0, 0, 0));
  sum_in_order(received.unbind(0), row);
}

// Each sums a slice and sends that to the others: however many ranks there are, a row travels twice.
void sum_in_slices(const Members& members, const Tensor& row) {
  const int own = members.transport.rank() - members.first;
  const auto slice = [&](int member) {
    const Share share = share_of(row.numel(), member, members.count);
    return row.narrow(0, share.begin, share.end - share.begin);
  };
  const Tensor mine = slice(own), received = at::empty({members.count, mine.numel()}, row.options());
  exchange(
      members, slice, [&](int member) { return received[member]; }, row.narrow(0, 0, 0));
  sum_in_order(received.unbind(0), mine);
  exchange(
      members, [&](int) { return mine; }, slice, row.narrow(0, 0, 0));
}

Tensor rows_of(const Tensor& x, int rank, int num_ranks) {
  const Share share = share_of(x.size(0), rank, num_ranks);
  return x.narrow(0, share.begin, share.end - share.begin);
}

}  // namespace

bool TensorRanks::is_recordable() const { return !is_split() || sums_ || group_.transport(true).is_recordable(); }

void TensorRanks::sum_(const Tensor& x) const { sum_(x, size()); }

void TensorRanks::sum_(const Tensor& x, int sharers) const {
  if (sharers == 1 || x.numel() == 0) return;
  const c10::DeviceGuard guard(x.device());
  const int first = rank() / sharers * sharers;
  const Tensor row = x.view({-1});
  if (sums_ && sums_->should_sum(row)) return sums_->sum_(row, first, sharers);
  const Members members{group_.transport(x.is_cuda()), first, sharers};
  sharers == 2 || row.numel() <= kSmall ? sum_at_once(members, row) : sum_in_slices(members, row);
}

std::vector<Tensor> TensorRanks::gather(const Tensor& x, const std::vector<std::vector<int64_t>>& shapes) const {
  if (!is_split()) return {x};
  const c10::DeviceGuard guard(x.device());
  const Tensor row = x.contiguous().view({-1});
  std::vector<Tensor> rows, all;
  for (int from = 0; from < size(); ++from) {
    const std::vector<int64_t>& shape = shapes[static_cast<size_t>(from)];
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    rows.push_back(from == rank() ? row : at::empty({count}, x.options()));
    all.push_back(from == rank() ? x : rows.back().view(shape));
  }
  group_.transport(x.is_cuda()).exchange(std::vector(rows.size(), row), rows);
  return all;
}

Tensor TensorRanks::gather_columns(const Tensor& x, int64_t columns) const {
  std::vector<std::vector<int64_t>> shapes;
  for (int from = 0; from < size(); ++from) {
    const Share share = share_of(columns, from, size());
    shapes.push_back({x.size(0), share.end - share.begin});
  }
  return at::cat(gather(x, shapes), 1);
}

Tensor TensorRanks::sum_rows(const Tensor& x) const {
  if (!is_split()) return x;
  const c10::DeviceGuard guard(x.device());
  std::vector<Tensor> sent, received;
  for (int to = 0; to < size(); ++to) sent.push_back(rows_of(x, to, size()).view({-1}));
  Tensor sum = at::empty_like(rows_of(x, rank(), size()));
  const Tensor &mine = sent[static_cast<size_t>(rank())], row = sum.view({-1});
  for (int from = 0; from < size(); ++from) received.push_back(from == rank() ? mine : at::empty_like(mine));
  group_.transport(x.is_cuda()).exchange(sent, received);
  sum_in_order(received, row);
  return sum;
}

Tensor TensorRanks::gather_rows(const Tensor& x, int64_t rows) const {
  if (!is_split()) return x;
  const c10::DeviceGuard guard(x.device());
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = rows;
  Tensor all = at::empty(shape, x.options());
  std::vector<Tensor> received;
  for (int from = 0; from < size(); ++from) received.push_back(rows_of(all, from, size()).view({-1}));
  group_.transport(x.is_cuda()).exchange(std::vector(received.size(), x.contiguous().view({-1})), received);
  return all;
}

}  // namespace kedge
