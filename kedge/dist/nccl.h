#pragma once
// NCCL's library, opened where the GPUs of several ranks are to be connected. Nothing of it is linked, and its header is not needed: the
// few functions in use are declared here, as version 2.10 and all later ones have them. Internal to this module.
#include <array>
#include <cstddef>
#include <string>

namespace kedge::nccl {

struct Communicator;   // NCCL's own
using Stream = void*;  // cudaStream_t

struct UniqueId {
  std::array<char, 128> bytes;
};
enum class Status : int { success = 0, in_progress = 7 };  // all others are errors
enum class DataType : int { int8 = 0, uint8 = 1, int32 = 2, int64 = 4, float16 = 6, float32 = 7, float64 = 8, bfloat16 = 9 };
enum class Reduction : int { sum = 0 };

struct Functions {
  Status (*version)(int* version);
  const char* (*error_string)(Status status);
  const char* (*last_error)(Communicator* communicator);
  Status (*unique_id)(UniqueId* id);
  Status (*init_rank)(Communicator** communicator, int num_ranks, UniqueId id, int rank);
  Status (*destroy)(Communicator* communicator);
  Status (*abort)(Communicator* communicator);
  Status (*async_error)(Communicator* communicator, Status* error);
  Status (*group_start)();
  Status (*group_end)();
  Status (*send)(const void* data, size_t count, DataType type, int to, Communicator* communicator, Stream stream);
  Status (*receive)(void* data, size_t count, DataType type, int from, Communicator* communicator, Stream stream);
  Status (*all_gather)(const void* mine, void* all, size_t count, DataType type, Communicator* communicator, Stream stream);
  Status (*reduce_scatter)(const void* parts, void* own, size_t count, DataType type, Reduction reduction, Communicator* communicator,
                           Stream stream);
};

// Opens the library, which stays open. UsageError where it is not installed, or is too old.
[[nodiscard]] Functions load(const std::string& library = "libnccl.so.2");

// "2.28.9" of 22809.
[[nodiscard]] std::string version_text(int version);

// Throws the Error of a call that failed, with what NCCL says about it.
void check_status(const Functions& functions, Status status, const char* call, Communicator* communicator = nullptr);

}  // namespace kedge::nccl
