#pragma once
// Tensors between ranks over MPI: CPU tensors from and into their own memory, those of a GPU through pinned host memory, piece by piece.
// Synchronous.
#include "kedge/dist/mpi.h"
#include "kedge/dist/transport.h"

namespace kedge {

// `world` must outlive it.
class HostTransport final : public Transport {
 public:
  explicit HostTransport(const mpi::World& world) : world_(world) {}

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] int rank() const override { return world_.rank(); }
  [[nodiscard]] int size() const override { return world_.size(); }
  void exchange(std::span<const Tensor> to, std::span<const Tensor> from) override;

 private:
  void exchange_staged(std::span<const Tensor> to, std::span<const Tensor> from) const;

  const mpi::World& world_;
};

}  // namespace kedge
