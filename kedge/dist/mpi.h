#pragma once
// Bytes between the ranks of an MPI job. Internal to this module; independent of what the bytes mean and of which calls match.
// mpi.cpp is the only file that uses MPI; a build without MPI has no_mpi.cpp in its place.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kedge::mpi {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// MPI counts in int, so long messages travel in pieces.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// All ranks of the job, or some of them. Calls come from one thread at a time and in the same order on every rank.
class World {
 public:
  World();   // all ranks: starts MPI, once per process
  ~World();  // of all ranks: ends MPI, and waits until all ranks do
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Those ranks that call it with the same colour, ordered by their keys. It must not outlive this one.
  [[nodiscard]] std::unique_ptr<World> split(int colour, int key) const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  // Every rank's `mine` in rank order; all of one length.
  void all_gather(ConstBytes mine, Bytes all) const;
  void broadcast(Bytes data, int root, size_t message_bytes = kMaxMessageBytes) const;
  // to[r] goes to rank r, from[r] comes from it; lengths must match pairwise. to[rank()] is copied to from[rank()], or is
  // the same memory.
  void exchange(std::span<const ConstBytes> to, std::span<const Bytes> from, size_t message_bytes = kMaxMessageBytes) const;

 private:
  explicit World(uintptr_t communicator);

  uintptr_t communicator_ = 0;  // MPI's own, a pointer or a number
  bool is_all_ = true;
  int rank_ = 0;
  int size_ = 1;
};

// Was this program built with MPI? Its library may be missing here.
[[nodiscard]] bool is_built();

// "Open MPI v4.1.4", without starting it; empty in a build without MPI and where its library is not installed.
[[nodiscard]] std::string library_version();

// Of all ranks of the job: returns when all have called it. Those that wait for long sleep between two looks, so that they leave the
// machine to others; one that has slept notices a millisecond late.
void meet_asleep();

// Ends every process of the job at once. Returns only where MPI is not running.
void abort_job(int exit_code);

}  // namespace kedge::mpi
