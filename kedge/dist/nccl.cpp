#include "kedge/dist/nccl.h"

#include <dlfcn.h>

#include "kedge/core/error.h"

namespace kedge::nccl {
namespace {

constexpr int kOldest = 21000;  // bf16 came with 2.10

template <typename F>
void find(void* handle, const std::string& library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(handle, name));
  check(function != nullptr, library, " has no ", name, ": expected NCCL ", version_text(kOldest), " or later");
}

}  // namespace

Functions load(const std::string& library) {
  // If torch's CUDA libraries have brought it along, this is the same one, wherever it lies.
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW);
  check(handle != nullptr, "GPUs of several ranks are connected by NCCL, which is not installed here (",
        handle == nullptr ? ::dlerror() : "", "): pip install nvidia-nccl-cu13, and put the folder of ", library, " into LD_LIBRARY_PATH");
  Functions functions{};
  find(handle, library, "ncclGetVersion", functions.version);
  find(handle, library, "ncclGetErrorString", functions.error_string);
  find(handle, library, "ncclGetLastError", functions.last_error);
  find(handle, library, "ncclGetUniqueId", functions.unique_id);
  find(handle, library, "ncclCommInitRank", functions.init_rank);
  find(handle, library, "ncclCommDestroy", functions.destroy);
  find(handle, library, "ncclCommAbort", functions.abort);
  find(handle, library, "ncclCommGetAsyncError", functions.async_error);
  find(handle, library, "ncclGroupStart", functions.group_start);
  find(handle, library, "ncclGroupEnd", functions.group_end);
  find(handle, library, "ncclSend", functions.send);
  find(handle, library, "ncclRecv", functions.receive);
  find(handle, library, "ncclAllGather", functions.all_gather);
  find(handle, library, "ncclReduceScatter", functions.reduce_scatter);
  int version = 0;
  check_status(functions, functions.version(&version), "ncclGetVersion");
  check(version >= kOldest, library, ": expected NCCL ", version_text(kOldest), " or later, found ", version_text(version));
  return functions;
}

std::string version_text(int version) {
  const int major = version < 10000 ? 1000 : 10000;  // how much it counts for: 2.8.4 is 2804, 2.9.6 is 20906
  return str(version / major, ".", version % major / 100, ".", version % 100);
}

void check_status(const Functions& functions, Status status, const char* call, Communicator* communicator) {
  if (status == Status::success) return;
  const char* const last = functions.last_error(communicator);
  const std::string details = last == nullptr ? "" : last;
  throw Error(str(call, ": ", functions.error_string(status), details.empty() ? "" : ": ", details));
}

}  // namespace kedge::nccl
