// The tensor calls of Group: what travels, and how it is reduced. Tensors are sent in pieces of bounded size, so that little memory is
// needed beside them.
#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ops/maximum.h>
#include <c10/core/DeviceGuard.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/tensor.h"
#include "kedge/dist/collective_signature.h"
#include "kedge/dist/group.h"
#include "kedge/dist/host_transport.h"

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

// The elements [start, start + length) of a flat tensor, as many of them as there are.
Tensor part(const Tensor& flat, int64_t start, int64_t length) {
  start = std::min(start, flat.numel());
  return flat.narrow(0, start, std::min(length, flat.numel() - start));
}

// How many elements of each of `num_slices` slices make one piece.
int64_t piece_length(const Tensor& tensor, int64_t num_slices) {
  return std::max<int64_t>(1, kPieceBytes / tensor.element_size() / num_slices);
}

std::vector<Tensor> cut(const Tensor& flat, int64_t num_parts, int64_t length) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < num_parts; ++i) parts.push_back(part(flat, i * length, length));
  return parts;
}

// parts[r] goes to rank r. `out` becomes the reduction, in rank order, of what all ranks sent to this one.
void reduce_parts(Transport& transport, const std::vector<Tensor>& parts, const Tensor& scratch, const Tensor& out, Reduce reduce) {
  const std::vector<Tensor> received = cut(scratch.narrow(0, 0, std::ssize(parts) * out.numel()), std::ssize(parts), out.numel());
  transport.exchange(parts, received);
  if (reduce == Reduce::sum) return sum_in_order(received, out);
  Tensor largest = received[0];
  for (size_t rank = 1; rank < received.size(); ++rank) at::maximum_out(largest, largest, received[rank]);
  out.copy_(largest);
}

}  // namespace

Group Group::with_transport(std::shared_ptr<Transport> accelerated, std::shared_ptr<Transport> host) const {
  Group group = *this;
  group.accelerated_ = std::move(accelerated);
  if (host != nullptr) group.host_ = std::move(host);
  return group;
}

Transport& Group::transport(bool is_cuda) const {
  ensure(world_ != nullptr, "a group of one sends nothing");
  if (is_cuda && accelerated_ != nullptr) return *accelerated_;
  if (host_ == nullptr) host_ = std::make_shared<HostTransport>(*world_);
  return *host_;
}

void Group::broadcast(const Tensor& tensor, int root) const {
  check_root(root);
  if (world_ == nullptr) return;
  agree(call_for(str("broadcast from rank ", root), tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  const Tensor flat = flat_view(tensor), nothing = flat.narrow(0, 0, 0);
  const int64_t length = std::min(piece_length(flat, 1), flat.numel());
  const bool sends = rank_ == root;
  for (int64_t start = 0; start < flat.numel(); start += length) {
    const Tensor piece = part(flat, start, length);
    std::vector<Tensor> to(static_cast<size_t>(size_), sends ? piece : nothing), from(static_cast<size_t>(size_), nothing);
    from[static_cast<size_t>(root)] = piece;
    transport(tensor.is_cuda()).exchange(to, from);
  }
  if (!sends) put_back(flat, tensor);
}

void Group::all_reduce(const Tensor& tensor, Reduce reduce) const {
  check_reducible(tensor, reduce);
  if (world_ == nullptr) return;
  agree(call_for(reduce == Reduce::sum ? "all_reduce sum" : "all_reduce max", tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  const Tensor flat = flat_view(tensor);
  const int64_t length = std::min(piece_length(flat, 1), flat.numel());
  const Tensor scratch = at::empty({length + size_}, flat.options());  // a piece, rounded up to equal shares
  for (int64_t start = 0; start < flat.numel(); start += length) {
    const Tensor piece = part(flat, start, length);
    const std::vector<Tensor> shares = cut(piece, size_, (piece.numel() + size_ - 1) / size_);
    const Tensor mine = shares[static_cast<size_t>(rank_)];
    reduce_parts(transport(tensor.is_cuda()), shares, scratch, mine, reduce);
    transport(tensor.is_cuda()).exchange(std::vector(shares.size(), mine), shares);
  }
  put_back(flat, tensor);
}

Tensor Group::reduce_scatter(const Tensor& tensor, Reduce reduce) const {
  check_reducible(tensor, reduce);
  ensure(tensor.dim() > 0 && tensor.size(0) % size_ == 0, "reduce_scatter of ", shape_text(tensor.sizes()), " among ", size_,
         " ranks: the first dimension must divide evenly");
  if (world_ == nullptr) return tensor.detach().contiguous();
  agree(call_for(reduce == Reduce::sum ? "reduce_scatter sum" : "reduce_scatter max", tensor), Freedom::none);
  const c10::DeviceGuard guard(tensor.device());
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] /= size_;
  const Tensor result = at::empty(shape, tensor.options());
  const Tensor flat = flat_view(tensor), flat_result = result.view(-1);
  const int64_t length = std::min(piece_length(flat, size_), flat_result.numel());
  const Tensor scratch = at::empty({length * size_}, flat.options());
  const std::vector<Tensor> rows = cut(flat, size_, flat_result.numel());
  for (int64_t start = 0; start < flat_result.numel(); start += length) {
    std::vector<Tensor> pieces;
    for (const Tensor& row : rows) pieces.push_back(part(row, start, length));
    reduce_parts(transport(tensor.is_cuda()), pieces, scratch, part(flat_result, start, length), reduce);
  }
  return result;
}

Tensor Group::all_gather(const Tensor& tensor) const { return gather(tensor, "all_gather", Freedom::none); }

Tensor Group::all_gather_rows(const Tensor& tensor) const { return gather(tensor, "all_gather_rows", Freedom::rows); }

Tensor Group::gather(const Tensor& tensor, std::string_view name, Freedom freedom) const {
  const Tensor rows = tensor.dim() > 0 ? tensor : tensor.view({1});
  if (world_ == nullptr) return rows.detach().contiguous();
  const std::vector<CollectiveCall> calls = agree(call_for(name, rows), freedom);
  const c10::DeviceGuard guard(tensor.device());
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = 0;
  for (const CollectiveCall& call : calls) shape[0] += call.dims[0];
  const Tensor result = at::empty(shape, tensor.options());
  const Tensor flat_result = result.view(-1);
  std::vector<Tensor> blocks;  // rank r's rows, flat
  for (int64_t start = 0; const CollectiveCall& call : calls) {
    const int64_t numel = std::accumulate(call.shape().begin(), call.shape().end(), int64_t{1}, std::multiplies<>());
    blocks.push_back(flat_result.narrow(0, start, numel));
    start += numel;
  }
  transport(tensor.is_cuda()).exchange(std::vector(blocks.size(), flat_view(tensor)), blocks);
  return result;
}

}  // namespace kedge
