#include "kedge/dist/shard_exchange.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/error.h"
#include "kedge/dist/transport.h"

namespace kedge {
namespace {

// `own` becomes the sum, in rank order, of what every rank has for this one: to[r], of `longest` elements at most, goes to rank r.
void exchange_and_sum(Transport& transport, std::span<const Tensor> to, int64_t longest, const Tensor& own) {
  const int64_t ranks = transport.size(), length = std::max<int64_t>(1, ShardExchange::kPieceElements / ranks);
  const Tensor received = at::empty({ranks * std::min(length, own.numel())}, own.options());
  for (int64_t start = 0; start < longest; start += length) {
    const Tensor mine = piece_of(own, start, length);
    std::vector<Tensor> pieces, from;
    for (const Tensor& row : to) pieces.push_back(piece_of(row, start, length));
    for (int64_t rank = 0; rank < ranks; ++rank) from.push_back(received.narrow(0, rank * mine.numel(), mine.numel()));
    transport.exchange(pieces, from);
    sum_in_order(from, mine);
  }
}

// The same in the order that the transport is fastest with. It takes parts of one length only, so they are copied next to each other.
void reduce_scatter(Transport& transport, std::span<const Tensor> to, int64_t longest, const Tensor& own) {
  const int64_t ranks = transport.size(), most = std::max<int64_t>(1, ShardExchange::kPieceElements / ranks);
  for (int64_t start = 0; start < longest; start += most) {
    const int64_t length = std::min(most, longest - start);
    const Tensor parts = at::zeros({ranks, length}, own.options()), sum = at::empty({length}, own.options());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Tensor piece = piece_of(to[static_cast<size_t>(rank)], start, length);
      parts[rank].narrow(0, 0, piece.numel()).copy_(piece);
    }
    transport.fast_reduce_scatter(parts.view({-1}), sum);
    const Tensor mine = piece_of(own, start, length);
    mine.copy_(sum.narrow(0, 0, mine.numel()));
  }
}

// `total` becomes the sum of what every rank has: each sums its slice of it and sends that to the others, so that twice its size travels,
// however many ranks there are.
void sum_over_replicas(Transport& transport, const Tensor& part, const Tensor& total) {
  std::vector<Tensor> given, summed;
  for (int rank = 0; rank < transport.size(); ++rank) {
    const Share slice = share_of(part.numel(), rank, transport.size());
    given.push_back(part.narrow(0, slice.begin, length(slice)));
    summed.push_back(total.narrow(0, slice.begin, length(slice)));
  }
  const Tensor mine = summed[static_cast<size_t>(transport.rank())];
  exchange_and_sum(transport, given, length(share_of(part.numel(), 0, transport.size())), mine);
  transport.exchange(std::vector(summed.size(), mine), summed);
}

}  // namespace

ShardExchange::ShardExchange(ShardOptions options, ShardLayout layout) : options_(std::move(options)), layout_(std::move(layout)) {
  ensure(layout_.num_ranks() == options_.shard.size(), "a layout for ", layout_.num_ranks(), " ranks among ", options_.shard.size());
}

std::vector<Tensor> ShardExchange::parts_of(size_t bucket, const Tensor& whole) const {
  const Share all = layout_.bucket(bucket);
  ensure(whole.numel() == length(all), "bucket ", bucket, " has ", length(all), " elements, found ", whole.numel());
  std::vector<Tensor> parts;
  for (int rank = 0; rank < layout_.num_ranks(); ++rank) {
    const Share part = layout_.part(bucket, rank);
    parts.push_back(whole.narrow(0, part.begin - all.begin, length(part)));
  }
  return parts;
}

void ShardExchange::gather(size_t bucket, const Tensor& own, const Tensor& whole) const {
  const std::vector<Tensor> parts = parts_of(bucket, whole);
  const c10::DeviceGuard guard(whole.device());
  if (parts.size() > 1) return options_.shard.transport(whole.is_cuda()).exchange(std::vector(parts.size(), own), parts);
  if (own.data_ptr() != whole.data_ptr()) whole.copy_(own);
}

void ShardExchange::reduce(size_t bucket, const Tensor& whole, const Tensor& own) const {
  const std::vector<Tensor> parts = parts_of(bucket, whole);
  const c10::DeviceGuard guard(whole.device());
  const Group &shard = options_.shard, &replicas = options_.replicas;
  int64_t longest = 0;
  for (const Tensor& part : parts) longest = std::max(longest, part.numel());
  Tensor sum = parts[0];
  if (shard.size() > 1) {
    sum = at::empty_like(own);
    const auto add_up = options_.collectives == Collectives::fast ? reduce_scatter : exchange_and_sum;
    add_up(shard.transport(whole.is_cuda()), parts, longest, sum);
  }
  if (replicas.size() > 1) {
    const Tensor total = at::empty_like(own);
    sum_over_replicas(replicas.transport(whole.is_cuda()), sum, total);
    sum = total;
  }
  own.add_(sum);
}

}  // namespace kedge
