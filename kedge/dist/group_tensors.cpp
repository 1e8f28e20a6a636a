// The tensor calls of Group. Tensors are sent in pieces of bounded size; a piece of a CPU tensor is sent from and received
// into the tensor's own memory, one of a CUDA tensor through pinned host memory.
#include <algorithm>
#include <numeric>

#include <ATen/ops/maximum.h>
#include <c10/core/DeviceGuard.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/tensor.h"
#include "kedge/dist/collective_signature.h"
#include "kedge/dist/group.h"
#include "kedge/dist/mpi.h"

namespace kedge {
namespace {

constexpr int64_t kPieceBytes = int64_t{32} << 20;

CollectiveCall call_for(std::string_view name, const Tensor& tensor) {
  return make_call(name, name_of(tensor.scalar_type()), tensor.sizes());
}

void check_reducible(const Tensor& tensor, Reduce reduce) {
  ensure(reduce != Reduce::sum || tensor.scalar_type() != at::kBool, "there is no sum of bool tensors; convert them to int64 first");
}

// All elements in a row; the tensor's own memory if it is contiguous.
Tensor flat_view(const Tensor& tensor) { return tensor.detach().contiguous().view(-1); }

// A flat_view that was written to becomes the tensor's content.
void put_back(const Tensor& flat, const Tensor& tensor) {
  if (!tensor.is_contiguous()) tensor.detach().copy_(flat.view(tensor.sizes()));
}

mpi::Bytes bytes_of(const Tensor& host) { return {static_cast<std::byte*>(host.data_ptr()), host.nbytes()}; }

std::vector<mpi::Bytes> bytes_of(const std::vector<Tensor>& hosts) {
  std::vector<mpi::Bytes> all;
  for (const Tensor& host : hosts) all.push_back(bytes_of(host));
  return all;
}

void exchange(const mpi::World& world, const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  const std::vector<mpi::Bytes> sent = bytes_of(to);
  world.exchange(std::vector<mpi::ConstBytes>(sent.begin(), sent.end()), bytes_of(from));
}

// The elements [start, start + length) of a flat tensor, as many of them as there are.
Tensor part(const Tensor& flat, int64_t start, int64_t length) {
  start = std::min(start, flat.numel());
  return flat.narrow(0, start, std::min(length, flat.numel() - start));
}

// Host memory for the slices of one piece: the slices themselves on the CPU, pinned memory for those on a CUDA device.
class HostMemory {
 public:
  HostMemory(const Tensor& flat, int64_t numel) {
    if (!flat.is_cpu()) pinned_ = at::empty({numel}, flat.options().device(at::kCPU).pinned_memory(true));
  }

  void start_piece() { used_ = 0; }

  Tensor for_slice(const Tensor& slice) {
    if (!pinned_.defined()) return slice;
    used_ += slice.numel();
    return pinned_.narrow(0, used_ - slice.numel(), slice.numel());
  }

 private:
  Tensor pinned_;
  int64_t used_ = 0;
};

// Between a slice and its host memory; nothing to do if they are the same.
void copy_over(const Tensor& to, const Tensor& from) {
  if (!to.is_same(from)) to.copy_(from);
}

// How many elements of each of `num_slices` slices make one piece.
int64_t piece_length(const Tensor& tensor, int64_t num_slices) {
  return std::max<int64_t>(1, kPieceBytes / tensor.element_size() / num_slices);
}

// parts[r] goes to rank r. `out` becomes the reduction, in rank order, of what all ranks sent to this one.
void reduce_parts(const mpi::World& world, const std::vector<Tensor>& parts, const Tensor& scratch, const Tensor& out, Reduce reduce) {
  std::vector<Tensor> received;
  for (size_t rank = 0; rank < parts.size(); ++rank)
    received.push_back(scratch.narrow(0, static_cast<int64_t>(rank) * out.numel(), out.numel()));
  exchange(world, parts, received);
  const bool widen = reduce == Reduce::sum && (out.scalar_type() == at::kBFloat16 || out.scalar_type() == at::kHalf);
  Tensor total = widen ? received[0].to(at::kFloat) : received[0];
  for (size_t rank = 1; rank < received.size(); ++rank) {
    if (reduce == Reduce::sum)
      total.add_(received[rank]);
    else
      at::maximum_out(total, total, received[rank]);
  }
  out.copy_(total);
}

Tensor scratch_like(const Tensor& flat, int64_t numel) { return at::empty({numel}, flat.options().device(at::kCPU)); }

}  // namespace

void Group::broadcast(const Tensor& tensor, int root) const {
  check_root(root);
  if (size_ == 1) return;
  agree(call_for(str("broadcast from rank ", root), tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  const Tensor flat = flat_view(tensor);
  const int64_t length = std::min(piece_length(flat, 1), flat.numel());
  HostMemory memory(flat, length);
  for (int64_t start = 0; start < flat.numel(); start += length) {
    const Tensor slice = part(flat, start, length);
    memory.start_piece();
    const Tensor host = memory.for_slice(slice);
    if (rank_ == root) copy_over(host, slice);
    world_->broadcast(bytes_of(host), root);
    if (rank_ != root) copy_over(slice, host);
  }
  if (rank_ != root) put_back(flat, tensor);
}

void Group::all_reduce(const Tensor& tensor, Reduce reduce) const {
  check_reducible(tensor, reduce);
  if (size_ == 1) return;
  agree(call_for(reduce == Reduce::sum ? "all_reduce sum" : "all_reduce max", tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  const Tensor flat = flat_view(tensor);
  const int64_t length = std::min(piece_length(flat, 1), flat.numel());
  HostMemory memory(flat, length);
  const Tensor scratch = scratch_like(flat, length + size_);  // a piece, rounded up to equal shares
  for (int64_t start = 0; start < flat.numel(); start += length) {
    const Tensor slice = part(flat, start, length);
    memory.start_piece();
    const Tensor host = memory.for_slice(slice);
    copy_over(host, slice);
    const int64_t share = (slice.numel() + size_ - 1) / size_;
    std::vector<Tensor> shares;
    for (int rank = 0; rank < size_; ++rank) shares.push_back(part(host, rank * share, share));
    const Tensor mine = shares[static_cast<size_t>(rank_)];
    reduce_parts(*world_, shares, scratch, mine, reduce);
    exchange(*world_, std::vector(shares.size(), mine), shares);
    copy_over(slice, host);
  }
  put_back(flat, tensor);
}

Tensor Group::reduce_scatter(const Tensor& tensor, Reduce reduce) const {
  check_reducible(tensor, reduce);
  ensure(tensor.dim() > 0 && tensor.size(0) % size_ == 0, "reduce_scatter of ", shape_text(tensor.sizes()), " among ", size_,
         " ranks: the first dimension must divide evenly");
  if (size_ == 1) return tensor.detach().contiguous();
  agree(call_for(reduce == Reduce::sum ? "reduce_scatter sum" : "reduce_scatter max", tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] /= size_;
  const Tensor result = at::empty(shape, tensor.options());
  const Tensor flat = flat_view(tensor);
  const Tensor flat_result = result.view(-1);
  const int64_t length = std::min(piece_length(flat, size_), flat_result.numel());
  HostMemory memory(flat, length * (size_ + 1));
  const Tensor scratch = scratch_like(flat, length * size_);
  for (int64_t start = 0; start < flat_result.numel(); start += length) {
    memory.start_piece();
    std::vector<Tensor> hosts;
    for (int rank = 0; rank < size_; ++rank) {
      const Tensor slice = part(flat.narrow(0, rank * flat_result.numel(), flat_result.numel()), start, length);
      copy_over(hosts.emplace_back(memory.for_slice(slice)), slice);
    }
    const Tensor slice = part(flat_result, start, length);
    const Tensor host = memory.for_slice(slice);
    reduce_parts(*world_, hosts, scratch, host, reduce);
    copy_over(slice, host);
  }
  return result;
}

Tensor Group::all_gather(const Tensor& tensor) const { return gather(tensor, "all_gather", Freedom::none); }

Tensor Group::all_gather_rows(const Tensor& tensor) const { return gather(tensor, "all_gather_rows", Freedom::rows); }

Tensor Group::gather(const Tensor& tensor, std::string_view name, Freedom freedom) const {
  const Tensor rows = tensor.dim() > 0 ? tensor : tensor.view({1});
  if (size_ == 1) return rows.detach().contiguous();
  const std::vector<CollectiveCall> calls = agree(call_for(name, rows), freedom);
  const c10::DeviceGuard guard(tensor.device());
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = 0;
  for (const CollectiveCall& call : calls) shape[0] += call.dims[0];
  const Tensor result = at::empty(shape, tensor.options());

  const Tensor flat_result = result.view(-1);
  std::vector<Tensor> blocks;  // rank r's rows, flat
  int64_t longest = 0;
  for (int64_t start = 0; const CollectiveCall& call : calls) {
    const int64_t numel = std::accumulate(call.shape().begin(), call.shape().end(), int64_t{1}, std::multiplies<>());
    blocks.push_back(flat_result.narrow(0, start, numel));
    start += numel;
    longest = std::max(longest, numel);
  }
  const Tensor flat = flat_view(tensor);
  const int64_t length = std::min(piece_length(flat, size_), longest);
  HostMemory memory(flat, length * size_);
  for (int64_t start = 0; start < longest; start += length) {
    memory.start_piece();
    std::vector<Tensor> slices;
    std::vector<Tensor> hosts;
    for (const Tensor& block : blocks) hosts.push_back(memory.for_slice(slices.emplace_back(part(block, start, length))));
    const Tensor mine = hosts[static_cast<size_t>(rank_)];
    mine.copy_(part(flat, start, length));
    exchange(*world_, std::vector(hosts.size(), mine), hosts);
    for (size_t rank = 0; rank < hosts.size(); ++rank) copy_over(slices[rank], hosts[rank]);
  }
  return result;
}

}  // namespace kedge
