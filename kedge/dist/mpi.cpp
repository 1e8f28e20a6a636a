#include "kedge/dist/mpi.h"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kedge/core/error.h"

namespace kedge::mpi {
namespace {

// MPI is loaded when a job has ranks, and nothing of it is linked: one process runs on machines that have none, and any version with the
// same name works (Open MPI 4 and 5 share theirs). Global, because its plugins look for its symbols.
void* open_library(int mode) { return ::dlopen(KEDGE_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL | mode); }

struct Library {
  void* handle = open_library(0);
  std::string why = handle == nullptr ? ::dlerror() : "";

  template <typename F>
  [[nodiscard]] F* find(const char* name) const {
    void* const found = handle == nullptr ? nullptr : ::dlsym(handle, name);
    ensure(found != nullptr || handle == nullptr, KEDGE_MPI_LIBRARY, " has no ", name);
    return reinterpret_cast<F*>(found);
  }

  decltype(MPI_Abort)* abort = find<decltype(MPI_Abort)>("MPI_Abort");
  decltype(MPI_Allgather)* all_gather = find<decltype(MPI_Allgather)>("MPI_Allgather");
  decltype(MPI_Bcast)* broadcast = find<decltype(MPI_Bcast)>("MPI_Bcast");
  decltype(MPI_Comm_rank)* comm_rank = find<decltype(MPI_Comm_rank)>("MPI_Comm_rank");
  decltype(MPI_Comm_set_errhandler)* set_error_handler = find<decltype(MPI_Comm_set_errhandler)>("MPI_Comm_set_errhandler");
  decltype(MPI_Comm_size)* comm_size = find<decltype(MPI_Comm_size)>("MPI_Comm_size");
  decltype(MPI_Comm_split)* comm_split = find<decltype(MPI_Comm_split)>("MPI_Comm_split");
  decltype(MPI_Error_string)* error_string = find<decltype(MPI_Error_string)>("MPI_Error_string");
  decltype(MPI_Finalize)* finalize = find<decltype(MPI_Finalize)>("MPI_Finalize");
  decltype(MPI_Finalized)* finalized = find<decltype(MPI_Finalized)>("MPI_Finalized");
  decltype(MPI_Get_library_version)* library_version = find<decltype(MPI_Get_library_version)>("MPI_Get_library_version");
  decltype(MPI_Ibarrier)* begin_barrier = find<decltype(MPI_Ibarrier)>("MPI_Ibarrier");
  decltype(MPI_Init_thread)* init_thread = find<decltype(MPI_Init_thread)>("MPI_Init_thread");
  decltype(MPI_Initialized)* initialized = find<decltype(MPI_Initialized)>("MPI_Initialized");
  decltype(MPI_Irecv)* receive = find<decltype(MPI_Irecv)>("MPI_Irecv");
  decltype(MPI_Isend)* send = find<decltype(MPI_Isend)>("MPI_Isend");
  decltype(MPI_Test)* test = find<decltype(MPI_Test)>("MPI_Test");
  decltype(MPI_Waitall)* wait_all = find<decltype(MPI_Waitall)>("MPI_Waitall");
#ifdef OPEN_MPI  // what its header calls constants are addresses inside the library
  MPI_Comm world = static_cast<MPI_Comm>(find<void>("ompi_mpi_comm_world"));
  MPI_Datatype byte = static_cast<MPI_Datatype>(find<void>("ompi_mpi_byte"));
  MPI_Errhandler errors_return = static_cast<MPI_Errhandler>(find<void>("ompi_mpi_errors_return"));
#else
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype byte = MPI_BYTE;
  MPI_Errhandler errors_return = MPI_ERRORS_RETURN;
#endif
};

const Library& library() {
  static const Library instance;
  return instance;
}

void checked(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  library().error_string(code, text.data(), &length);
  throw Error(str(call, ": ", text.substr(0, static_cast<size_t>(length))));
}

// MPI's handles are pointers in some libraries and numbers in others.
uintptr_t number_of(MPI_Comm communicator) {
  static_assert(sizeof(MPI_Comm) <= sizeof(uintptr_t));
  uintptr_t number = 0;
  std::memcpy(&number, &communicator, sizeof communicator);
  return number;
}

MPI_Comm communicator_of(uintptr_t number) {
  MPI_Comm communicator{};
  std::memcpy(&communicator, &number, sizeof communicator);
  return communicator;
}

// Calls visit(message) for consecutive messages of at most `message_bytes`.
template <typename Byte, typename Visit>
void in_messages(std::span<Byte> data, size_t message_bytes, Visit&& visit) {
  for (size_t start = 0; start < data.size(); start += message_bytes)
    visit(data.subspan(start, std::min(message_bytes, data.size() - start)));
}

// Slurm's PMIx at times lets a rank leave MPI's start while another is still in it, where Open MPI 4 takes messages but has nobody to give
// them to: the first message then crashes the slower rank. Seen about once in 500 starts on two busy nodes with Slurm 22.05; nobody can be
// asked without a message, so the first one comes later.
void await_slower_ranks() {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  if (job != nullptr && std::string_view(job).starts_with("slurm.")) std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

}  // namespace

World::World() {
  check(library().handle != nullptr, "more than one process is connected by MPI, which is not installed here (", library().why,
        "): apt-get install openmpi-bin");
  int started = 0;
  library().initialized(&started);
  ensure(started == 0, "MPI is started twice in one process");
  int threads = MPI_THREAD_SINGLE;
  checked(library().init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "MPI_Init_thread");
  await_slower_ranks();
  // Failures come back as codes, so that they reach the log with our rank like any other error.
  checked(library().set_error_handler(library().world, library().errors_return), "MPI_Comm_set_errhandler");
  if (threads < MPI_THREAD_SERIALIZED) throw Error("this MPI cannot be used from more than one thread (MPI_THREAD_SERIALIZED)");
  communicator_ = number_of(library().world);
  checked(library().comm_rank(library().world, &rank_), "MPI_Comm_rank");
  checked(library().comm_size(library().world, &size_), "MPI_Comm_size");
}

World::World(uintptr_t communicator) : communicator_(communicator), is_all_(false) {
  checked(library().set_error_handler(communicator_of(communicator), library().errors_return), "MPI_Comm_set_errhandler");
  checked(library().comm_rank(communicator_of(communicator), &rank_), "MPI_Comm_rank");
  checked(library().comm_size(communicator_of(communicator), &size_), "MPI_Comm_size");
}

std::unique_ptr<World> World::split(int colour, int key) const {
  MPI_Comm part{};
  checked(library().comm_split(communicator_of(communicator_), colour, key, &part), "MPI_Comm_split");
  return std::unique_ptr<World>(new World(number_of(part)));
}

World::~World() {
  if (is_all_) library().finalize();  // which frees the parts as well; freeing one earlier would be a collective call
}

void World::all_gather(ConstBytes mine, Bytes all) const {
  ensure(all.size() == mine.size() * static_cast<size_t>(size_) && mine.size() <= kMaxMessageBytes, "all_gather of ", mine.size(),
         " bytes into ", all.size());
  const int count = static_cast<int>(mine.size());
  checked(library().all_gather(mine.data(), count, library().byte, all.data(), count, library().byte, communicator_of(communicator_)),
          "MPI_Allgather");
}

void World::broadcast(Bytes data, int root, size_t message_bytes) const {
  in_messages(data, message_bytes, [&](Bytes message) {
    checked(library().broadcast(message.data(), static_cast<int>(message.size()), library().byte, root, communicator_of(communicator_)),
            "MPI_Bcast");
  });
}

void World::exchange(std::span<const ConstBytes> to, std::span<const Bytes> from, size_t message_bytes) const {
  const auto size = static_cast<size_t>(size_);
  const auto self = static_cast<size_t>(rank_);
  ensure(to.size() == size && from.size() == size && to[self].size() == from[self].size(), "exchange needs one part per rank");
  // Messages between two ranks arrive in the order they were sent, so one tag is enough.
  constexpr int kTag = 1;
  std::vector<MPI_Request> requests;
  for (size_t step = 1; step < size; ++step) {
    const size_t source = (self + size - step) % size;
    in_messages(from[source], message_bytes, [&](Bytes message) {
      checked(library().receive(message.data(), static_cast<int>(message.size()), library().byte, static_cast<int>(source), kTag,
                                communicator_of(communicator_), &requests.emplace_back()),
              "MPI_Irecv");
    });
  }
  for (size_t step = 1; step < size; ++step) {  // each rank starts with its neighbour: no rank is everybody's first
    const size_t target = (self + step) % size;
    in_messages(to[target], message_bytes, [&](ConstBytes message) {
      checked(library().send(message.data(), static_cast<int>(message.size()), library().byte, static_cast<int>(target), kTag,
                             communicator_of(communicator_), &requests.emplace_back()),
              "MPI_Isend");
    });
  }
  if (!to[self].empty() && to[self].data() != from[self].data()) std::memcpy(from[self].data(), to[self].data(), to[self].size());
  checked(library().wait_all(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

bool is_built() { return true; }

std::string library_version() {
  if (library().handle == nullptr) return "";
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  checked(library().library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));  // what follows is how it was built
}

void meet_asleep() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kAwake{2}, kSleep{1};  // one meeting often follows the other
  MPI_Request request{};
  checked(library().begin_barrier(library().world, &request), "MPI_Ibarrier");
  const Clock::time_point begin = Clock::now();
  for (int is_done = 0;;) {
    checked(library().test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) return;
    if (Clock::now() - begin > kAwake) std::this_thread::sleep_for(kSleep);
  }
}

void abort_job(int exit_code) {
  if (open_library(RTLD_NOLOAD) == nullptr) return;  // a process that never met others
  int started = 0;
  int ended = 0;
  library().initialized(&started);
  library().finalized(&ended);
  if (started == 0 || ended != 0) return;
  std::cout.flush();  // MPI_Abort flushes nothing
  std::fflush(nullptr);
  library().abort(library().world, exit_code);
}

}  // namespace kedge::mpi
