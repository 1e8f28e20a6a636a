#pragma once
// How the bytes of tensors travel between the ranks of a group. Independent of what a call means and of whether the ranks' calls match:
// those who use it have made sure of that.
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kedge/core/tensor.h"

namespace kedge {

// One per group and process. Calls come from one thread at a time and in the same order on every rank. Tensors are contiguous and have one
// dimension; those of a call are on one device and of one type. On a GPU a call is queued on the current stream and not waited for, unless
// the transport says otherwise; its memory must not be reused on another stream before that.
class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] virtual std::string_view name() const = 0;  // "mpi", "nccl", "peer"
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // to[r] goes to rank r, from[r] comes from it; lengths match pairwise and may be 0. to[rank()] is copied to from[rank()], or is the same
  // memory.
  virtual void exchange(std::span<const Tensor> to, std::span<const Tensor> from) = 0;

  // `all` is [size * mine], in rank order; `mine` may be its own part of it.
  virtual void all_gather(const Tensor& mine, const Tensor& all);
  // The own part of the sum over all ranks of `parts`, which is [size * own]. In whatever order is the fastest; in rank order unless a
  // transport has a faster one.
  virtual void fast_reduce_scatter(const Tensor& parts, const Tensor& own);

  // Can calls be recorded in a CUDA graph?
  [[nodiscard]] virtual bool is_recordable() const { return false; }

  // Throws Error if a call that was queued has failed since. For where the host waits for the results; not while calls are recorded.
  virtual void check() {}
};

// What was sent through a transport that counts.
struct Traffic {
  int64_t calls = 0;
  int64_t bytes_sent = 0;  // to other ranks
};

// What is sent of a row in the round that begins at `start`, where each has `length` elements at most.
[[nodiscard]] Tensor piece_of(const Tensor& row, int64_t start, int64_t length);

// `to` becomes the sum of the parts, in their order; bf16 and fp16 are summed in fp32 and rounded once. The first part may be `to` itself.
void sum_in_order(std::span<const Tensor> parts, const Tensor& to);

}  // namespace kedge
