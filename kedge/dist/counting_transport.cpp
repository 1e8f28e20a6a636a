#include "kedge/dist/counting_transport.h"

#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

int64_t size_in_bytes(const Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

}  // namespace

CountingTransport::CountingTransport(std::shared_ptr<Transport> inner)
    : inner_(std::move(inner)), rank_(inner_->rank()), size_(inner_->size()) {}

CountingTransport::CountingTransport(int rank, int size) : rank_(rank), size_(size) {
  ensure(rank >= 0 && rank < size, "rank ", rank, " of ", size);
}

void CountingTransport::exchange(std::span<const Tensor> to, std::span<const Tensor> from) {
  ensure(to.size() == static_cast<size_t>(size_) && from.size() == to.size(), "exchange needs one part per rank");
  int64_t bytes = -size_in_bytes(to[static_cast<size_t>(rank_)]);
  for (const Tensor& part : to) bytes += size_in_bytes(part);
  count(bytes);
  if (inner_) inner_->exchange(to, from);
}

void CountingTransport::all_gather(const Tensor& mine, const Tensor& all) {
  ensure(all.numel() == mine.numel() * size_, "all_gather of ", mine.numel(), " elements into ", all.numel());
  count(size_in_bytes(mine) * (size_ - 1));
  if (inner_) inner_->all_gather(mine, all);
}

void CountingTransport::fast_reduce_scatter(const Tensor& parts, const Tensor& own) {
  ensure(parts.numel() == own.numel() * size_, "fast_reduce_scatter of ", parts.numel(), " elements into ", own.numel());
  count(size_in_bytes(own) * (size_ - 1));
  if (inner_) inner_->fast_reduce_scatter(parts, own);
}

void CountingTransport::check() {
  if (inner_) inner_->check();
}

void CountingTransport::count(int64_t bytes_sent) {
  ++traffic_.calls;
  traffic_.bytes_sent += bytes_sent;
}

}  // namespace kedge
