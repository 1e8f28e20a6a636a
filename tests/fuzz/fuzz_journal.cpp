// Bytes as a journal: whatever they are, whole records come out, and the bytes they take hold the same records again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kedge/train/checkpoint/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const kedge::JournalRecords found = kedge::read_journal(bytes);
  if (found.size > size) std::abort();
  const kedge::JournalRecords again = kedge::read_journal(bytes.substr(0, found.size));
  if (again.size != found.size || again.records != found.records) std::abort();
  return 0;
}
