#pragma once
// The rank of this process in its job and the device it uses, from what mpirun or srun left in the
// environment. Started by neither, it is a job of one and MPI is not touched. Also how a job ends when a rank fails.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "kedge/config/config_schema.h"
#include "kedge/core/device.h"
#include "kedge/core/log.h"
#include "kedge/dist/group.h"
#include "kedge/dist/tensor_ranks.h"

namespace kedge {

// How the tensors of GPUs travel between ranks: NCCL; memory that ranks of one machine map from each other (CUDA IPC); or host memory and
// MPI, as those of the CPU always do.
enum class TransportKind { automatic, nccl, peer, mpi };
constexpr auto enum_names(TransportKind) {
  using Kind = TransportKind;
  return std::array<EnumName<Kind>, 4>{{{"auto", Kind::automatic}, {"nccl", Kind::nccl}, {"peer", Kind::peer}, {"mpi", Kind::mpi}}};
}

struct MeshOptions {
  std::string_view device = "auto";          // auto and cuda: this rank's share of the GPUs; or cpu, cuda:N
  std::string_view device_key = "--device";  // opens the error about `device`
  LogLevel log_level = LogLevel::info;
  TransportKind transport = TransportKind::automatic;  // NCCL, if ranks have GPUs
};

struct Mesh {
  Group world;
  int local_rank;  // among the ranks on this machine
  at::Device device;
  TransportKind transport = TransportKind::automatic;
  // Ranks that compute one copy of the model together, and those that have other rows of a batch: a grid of neighbours and steps.
  TensorRanks tensor = {};
  Group data = world;
  std::optional<int64_t> imagined_bytes = {};  // free memory of a GPU that a plan imagines: `device` is not to be used

  // The same ranks where every `size` neighbours compute together. Collective; as many must divide the ranks.
  [[nodiscard]] Mesh with_tensor_ranks(int size) const;

  // Groups of as many neighbours of `data`: their tensors travel as those of all do. Collective; as many must divide the ranks.
  [[nodiscard]] Group groups_of(int size) const;
  // Of every such group the ranks with this one's place in it.
  [[nodiscard]] Group across_groups_of(int size) const;

  // Starts MPI and the watchdog when there is more than one rank, puts the rank into the log and makes `device` the current one of this
  // thread. Once per process, before anything that may fail on one rank alone: until then the others cannot be notified.
  static Mesh from_environment(const MeshOptions& options = {});
};

// Puts the rank into the log as the launcher has it, before there is a Mesh: for what is said about settings, which are read first.
void name_rank_in_log();

// Ends this process, and all ranks of its job with it, after the message is logged. For the one catch in main: it works
// before, during and after the life of a Mesh.
[[noreturn]] void end_job(std::string_view message, int exit_code);

// What the launcher set.
struct Launch {
  int num_ranks = 1;
  int rank = 0;
  int local_rank = 0;
};
using Lookup = std::function<const char*(const char* name)>;  // std::getenv, or a table
[[nodiscard]] Launch read_launch(const Lookup& variable);

// Ranks of one machine take its GPUs in turn.
[[nodiscard]] at::Device device_of_rank(const MeshOptions& options, int local_rank, int num_cuda);

}  // namespace kedge
