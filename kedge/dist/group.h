#pragma once
// The ranks of a job and their collective calls. Independent of models. Includes no torch header, so that
// modules without torch can use it for bytes and numbers; the tensor calls are for those that include core/tensor.h.
//
// A group of one is legal everywhere and does nothing. Every call is made by all ranks, in the same order, by one thread at
// a time. The ranks first show each other what they are about to do: when they disagree on the call, the element type or
// the shape, all of them throw the same Error, and the group can still be used.
//
// Results are the same bits on every rank and in every run: a sum adds rank 0, 1, 2, ... in that order.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

namespace kedge {

namespace mpi {
class World;
}
struct CollectiveCall;
enum class Freedom;
class Transport;

enum class Reduce { sum, max };  // of a NaN and anything: NaN

// A value: copies are the same group. The last copy destroyed waits for the other ranks to end too, unless an exception is the
// reason; a rank that ends while others wait for it in a call ends the job with an error.
class Group {
 public:
  [[nodiscard]] static Group single();
  [[nodiscard]] static Group over_mpi();  // starts MPI; once per process, and only under mpirun or srun
  // The first of so many ranks, of which the others do not exist: for plans. Calls return as if all had what this one has; sums are not
  // multiplied.
  [[nodiscard]] static Group imagined(int size);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_imagined() const { return size_ > 1 && world_ == nullptr; }

  // Those ranks that call it with the same colour (0 or more), in their order here. Every rank calls it.
  [[nodiscard]] Group split(int colour) const;
  // The same ranks, whose GPU tensors travel this way, and those of the CPU the other; where there is none, over MPI.
  [[nodiscard]] Group with_transport(std::shared_ptr<Transport> accelerated, std::shared_ptr<Transport> host = nullptr) const;
  // How tensors of a device travel; not for a group of one.
  [[nodiscard]] Transport& transport(bool is_cuda) const;

  // No rank returns before all have entered.
  void barrier() const;

  // Byte strings of any length; the others' old content does not matter.
  void broadcast(std::string& text, int root) const;
  [[nodiscard]] std::vector<std::string> all_gather(std::string_view text) const;  // in rank order

  // In place. For timers and metrics: every rank holds all ranks' numbers for a moment.
  void all_reduce(std::span<double> values, Reduce reduce) const;

  // Tensors of any strides, also empty and without dimensions. Extra memory is bounded (below 100 MiB) where the tensor
  // is contiguous. Nothing is recorded for autograd.
  //
  // In place. bf16 and fp16 are summed in fp32 and rounded once; integers wrap around; there is no sum of bool.
  void broadcast(const at::Tensor& tensor, int root) const;
  void all_reduce(const at::Tensor& tensor, Reduce reduce) const;

  // Every rank's rows, in rank order: [size * rows, ...]. A tensor without dimensions is one row. With one member the result
  // is the tensor itself, as it is for reduce_scatter.
  [[nodiscard]] at::Tensor all_gather(const at::Tensor& tensor) const;
  // The same where ranks may have different numbers of rows, also none.
  [[nodiscard]] at::Tensor all_gather_rows(const at::Tensor& tensor) const;

  // [size * rows, ...] -> [rows, ...]: rank r gets the r-th block of rows of what all_reduce would give.
  [[nodiscard]] at::Tensor reduce_scatter(const at::Tensor& tensor, Reduce reduce) const;

 private:
  Group() = default;
  // Every rank's call, after they were found to agree.
  std::vector<CollectiveCall> agree(const CollectiveCall& mine, Freedom freedom) const;
  void check_root(int root) const;
  [[nodiscard]] at::Tensor gather(const at::Tensor& tensor, std::string_view name, Freedom freedom) const;

  int rank_ = 0;
  int size_ = 1;
  std::shared_ptr<const mpi::World> world_;                // null in a group of one, and in one that is imagined
  mutable std::shared_ptr<Transport> host_, accelerated_;  // the second is null where all tensors go over MPI
};

}  // namespace kedge
