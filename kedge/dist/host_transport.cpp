#include "kedge/dist/host_transport.h"

#include <algorithm>
#include <vector>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr int64_t kStagedBytes = int64_t{32} << 20U;  // of pinned memory, for all ranks together

mpi::Bytes bytes_of(const Tensor& host) { return {static_cast<std::byte*>(host.data_ptr()), host.nbytes()}; }

// Pinned memory for one piece of every rank.
class Staging {
 public:
  Staging(const Tensor& like, int64_t num_elements)
      : memory_(at::empty({num_elements}, like.options().device(at::kCPU).pinned_memory(true))) {}
  void start() { used_ = 0; }
  Tensor take(int64_t count) {
    used_ += count;
    return memory_.narrow(0, used_ - count, count);
  }

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

void exchange_bytes(const mpi::World& world, std::span<const Tensor> to, std::span<const Tensor> from) {
  std::vector<mpi::ConstBytes> sent;
  std::vector<mpi::Bytes> received;
  for (const Tensor& tensor : to) sent.emplace_back(bytes_of(tensor));
  for (const Tensor& tensor : from) received.push_back(bytes_of(tensor));
  world.exchange(sent, received);
}

}  // namespace

void HostTransport::exchange(std::span<const Tensor> to, std::span<const Tensor> from) {
  ensure(std::ssize(to) == size() && std::ssize(from) == size(), "an exchange needs one tensor per rank");
  to[0].is_cpu() ? exchange_bytes(world_, to, from) : exchange_staged(to, from);
}

void HostTransport::exchange_staged(std::span<const Tensor> to, std::span<const Tensor> from) const {
  const c10::DeviceGuard guard(to[0].device());
  const auto self = static_cast<size_t>(rank());
  int64_t longest = 0;
  for (const auto& tensors : {to, from})
    for (const Tensor& tensor : tensors) longest = std::max(longest, tensor.numel());
  const int64_t length = std::max<int64_t>(1, kStagedBytes / to[0].element_size() / size() / 2);  // equal on all ranks
  Staging staging(to[0], 2 * length * size());
  // Every rank takes as many rounds as its longest part needs; a pair of ranks has nothing to send in the rounds beyond theirs.
  for (int64_t start = 0; start < longest; start += length) {
    staging.start();
    std::vector<Tensor> sent, received;
    for (size_t rank = 0; rank < to.size(); ++rank) {
      const Tensor out = rank == self ? to[rank].narrow(0, 0, 0) : piece_of(to[rank], start, length);
      const Tensor in = rank == self ? from[rank].narrow(0, 0, 0) : piece_of(from[rank], start, length);
      sent.push_back(staging.take(out.numel()).copy_(out));
      received.push_back(staging.take(in.numel()));
    }
    exchange_bytes(world_, sent, received);
    for (size_t rank = 0; rank < from.size(); ++rank)
      if (rank != self) piece_of(from[rank], start, length).copy_(received[rank]);
  }
  if (!from[self].is_same(to[self]) && from[self].data_ptr() != to[self].data_ptr()) from[self].copy_(to[self]);
}

}  // namespace kedge
