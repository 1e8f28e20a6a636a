// The build without MPI: one process only.
#include "kedge/core/error.h"
#include "kedge/dist/mpi.h"

namespace kedge::mpi {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "this kedge was built without MPI and runs as one process only: install libopenmpi-dev and openmpi-bin and build it again with "
      "KEDGE_MPI=ON");
}

}  // namespace

World::World() { refuse(); }
World::World(uintptr_t) { refuse(); }
World::~World() = default;

std::unique_ptr<World> World::split(int, int) const { refuse(); }

void World::all_gather(ConstBytes, Bytes) const { refuse(); }
void World::broadcast(Bytes, int, size_t) const { refuse(); }
void World::exchange(std::span<const ConstBytes>, std::span<const Bytes>, size_t) const { refuse(); }

bool is_built() { return false; }

std::string library_version() { return ""; }

void meet_asleep() { refuse(); }

void abort_job(int) {}

}  // namespace kedge::mpi
