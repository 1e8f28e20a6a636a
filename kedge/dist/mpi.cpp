#include "kedge/dist/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "kedge/core/error.h"

namespace kedge::mpi {
namespace {

void checked(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(str(call, ": ", text.substr(0, static_cast<size_t>(length))));
}

// Calls visit(message) for consecutive messages of at most `message_bytes`.
template <typename Byte, typename Visit>
void in_messages(std::span<Byte> data, size_t message_bytes, Visit&& visit) {
  for (size_t start = 0; start < data.size(); start += message_bytes)
    visit(data.subspan(start, std::min(message_bytes, data.size() - start)));
}

}  // namespace

World::World() {
  int started = 0;
  MPI_Initialized(&started);
  ensure(started == 0, "MPI is started twice in one process");
  int threads = MPI_THREAD_SINGLE;
  checked(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "MPI_Init_thread");
  // Failures come back as codes, so that they reach the log with our rank like any other error.
  checked(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (threads < MPI_THREAD_SERIALIZED) throw Error("this MPI cannot be used from more than one thread (MPI_THREAD_SERIALIZED)");
  checked(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  checked(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

World::~World() { MPI_Finalize(); }

void World::all_gather(ConstBytes mine, Bytes all) const {
  ensure(all.size() == mine.size() * static_cast<size_t>(size_) && mine.size() <= kMaxMessageBytes, "all_gather of ", mine.size(),
         " bytes into ", all.size());
  const int count = static_cast<int>(mine.size());
  checked(MPI_Allgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
}

void World::broadcast(Bytes data, int root, size_t message_bytes) const {
  in_messages(data, message_bytes, [&](Bytes message) {
    checked(MPI_Bcast(message.data(), static_cast<int>(message.size()), MPI_BYTE, root, MPI_COMM_WORLD), "MPI_Bcast");
  });
}

void World::exchange(std::span<const ConstBytes> to, std::span<const Bytes> from, size_t message_bytes) const {
  const auto size = static_cast<size_t>(size_);
  const auto self = static_cast<size_t>(rank_);
  ensure(to.size() == size && from.size() == size && to[self].size() == from[self].size(), "exchange wants one part a rank");
  // Messages between two ranks arrive in the order they were sent, so one tag is enough.
  constexpr int kTag = 1;
  std::vector<MPI_Request> requests;
  for (size_t step = 1; step < size; ++step) {
    const size_t source = (self + size - step) % size;
    in_messages(from[source], message_bytes, [&](Bytes message) {
      checked(MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, static_cast<int>(source), kTag, MPI_COMM_WORLD,
                        &requests.emplace_back()),
              "MPI_Irecv");
    });
  }
  for (size_t step = 1; step < size; ++step) {  // each rank starts with its neighbour: no rank is everybody's first
    const size_t target = (self + step) % size;
    in_messages(to[target], message_bytes, [&](ConstBytes message) {
      checked(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, static_cast<int>(target), kTag, MPI_COMM_WORLD,
                        &requests.emplace_back()),
              "MPI_Isend");
    });
  }
  if (!to[self].empty() && to[self].data() != from[self].data()) std::memcpy(from[self].data(), to[self].data(), to[self].size());
  checked(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  checked(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));  // what follows is how it was built
}

void abort_job(int exit_code) {
  int started = 0;
  int ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started == 0 || ended != 0) return;
  std::cout.flush();  // MPI_Abort flushes nothing
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace kedge::mpi
