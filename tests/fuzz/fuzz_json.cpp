// Bytes as JSON: only UsageError may come out, and what parses must be the same after a dump.
#include <cstdint>
#include <cstdlib>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const kedge::Json json = kedge::Json::parse({reinterpret_cast<const char*>(data), size});
    const std::string dump = json.dump();
    if (kedge::Json::parse(dump).dump() != dump) std::abort();
  } catch (const kedge::UsageError&) {
  }
  return 0;
}
