#include "kedge/dist/mesh.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/dist/mpi.h"
#include "kedge/dist/nccl_transport.h"
#include "kedge/dist/peer_sums.h"
#include "kedge/dist/peer_transport.h"
#include "kedge/dist/watchdog.h"

namespace kedge {
namespace {

// Open MPI's mpirun, MPICH's (and srun --mpi=pmi2), srun. In this order: on a cluster mpirun starts its daemons with srun,
// whose variables its ranks inherit.
constexpr std::array kNumRanks = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
constexpr std::array kRank = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
constexpr std::array kLocalRank = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};

// The first of these variables that is set, as a number from `least` up.
std::optional<int> first_number(const Lookup& variable, std::span<const char* const> names, int least) {
  for (const char* name : names) {
    const char* found = variable(name);
    if (found == nullptr) continue;
    const std::string_view text = found;
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    check(error == std::errc() && end == text.data() + text.size() && number >= least, name, ": expected a number of at least ", least,
          ", found \"", text, "\"");
    return number;
  }
  return std::nullopt;
}

Launch read_environment() {
  return read_launch([](const char* name) -> const char* { return std::getenv(name); });
}

Group with_transport(const Group& group, TransportKind kind, at::Device device) {
  if (group.size() == 1 || !device.is_cuda() || kind == TransportKind::mpi) return group;
  return group.with_transport(kind == TransportKind::peer ? make_peer_transport(group, device) : make_nccl_transport(group, device));
}

// Every `size` neighbours, and those with the same place among them.
Group neighbours(const Group& of, int size, TransportKind transport, at::Device device) {
  return of.is_imagined() ? Group::imagined(size) : with_transport(of.split(of.rank() / size), transport, device);
}
Group across(const Group& of, int size, TransportKind transport, at::Device device) {
  return of.is_imagined() ? Group::imagined(of.size() / size) : with_transport(of.split(of.rank() % size), transport, device);
}

// A transport that is asked for by name carries everything, so that it can be seen alone.
TensorRanks tensor_ranks(const Group& world, int size, TransportKind transport, at::Device device) {
  if (size == 1) return {};
  const Group group = neighbours(world, size, transport, device);
  const bool by_peers = transport == TransportKind::peer || transport == TransportKind::automatic;
  if (group.is_imagined() || !device.is_cuda() || !by_peers) return TensorRanks(group);
  return TensorRanks(group, make_peer_sums(group, device));
}

}  // namespace

Mesh Mesh::with_tensor_ranks(int size) const {
  Mesh mesh = *this;
  mesh.tensor = tensor_ranks(world, size, transport, device);
  mesh.data = size == 1 ? world : across(world, size, transport, device);
  return mesh;
}

Group Mesh::groups_of(int size) const { return neighbours(data, size, transport, device); }

Group Mesh::across_groups_of(int size) const { return across(data, size, transport, device); }

Launch read_launch(const Lookup& variable) {
  const auto set = [&](const char* name) { return variable(name) != nullptr; };
  const bool can_meet = set("OMPI_COMM_WORLD_SIZE") || set("PMIX_RANK") || set("PMI_RANK");
  const std::optional<int> num_ranks = first_number(variable, kNumRanks, 1);
  // Taken for a job of one, each rank of an unknown launcher would train alone into the same folder.
  check(num_ranks.has_value() || !can_meet, "started by a launcher that does not say how many ranks there are (",
        set("PMIX_RANK") ? "PMIX_RANK" : "PMI_RANK", " is set, ", kNumRanks[0], ", ", kNumRanks[1], " and ", kNumRanks[2],
        " are not): start with mpirun or srun --mpi=pmix");
  if (num_ranks.value_or(1) == 1) return {};
  check(can_meet, "srun started ", *num_ranks, " tasks that MPI cannot connect: start with srun --mpi=pmix");
  return {.num_ranks = *num_ranks,
          .rank = first_number(variable, kRank, 0).value_or(0),
          .local_rank = first_number(variable, kLocalRank, 0).value_or(0)};
}

at::Device device_of_rank(const MeshOptions& options, int local_rank, int num_cuda) {
  const bool shared_out = options.device == "auto" || options.device == "cuda";
  if (shared_out && num_cuda > 0) return {at::kCUDA, static_cast<at::DeviceIndex>(local_rank % num_cuda)};
  return parse_device(options.device, options.device_key);
}

void name_rank_in_log() {
  const Launch launch = read_environment();
  set_up_log({.rank = launch.rank, .num_ranks = launch.num_ranks});
}

Mesh Mesh::from_environment(const MeshOptions& options) {
  const Launch launch = read_environment();
  const Group world = launch.num_ranks > 1 ? Group::over_mpi() : Group::single();
  set_up_log({.level = options.log_level, .rank = world.rank(), .num_ranks = world.size()});
  check(world.size() == launch.num_ranks, "the launcher started ", launch.num_ranks, " ranks, but MPI connects ", world.size(),
        ": is it the launcher of another MPI?");
  start_watchdog(world);
  const at::Device device = device_of_rank(options, launch.local_rank, options.device == "cpu" ? 0 : num_cuda_devices());
  if (device.is_cuda()) check_cuda_device(device.index(), options.device_key);
  use_device(device);
  return {with_transport(world, options.transport, device), launch.local_rank, device, options.transport};
}

void end_job(std::string_view message, int exit_code) {
  set_status_line("");
  log_error(message);
  end_watchdog(exit_code, message);
  mpi::abort_job(exit_code);
  end_process(exit_code);
}

}  // namespace kedge
