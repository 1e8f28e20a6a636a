// Bytes as a safetensors file, and as a header alone: they are refused, or the tensors cover the data and a header written for them
// reads back the same. Of a header alone the first byte is the size of the data.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/model/files/safetensors.h"

namespace {

using namespace kedge;

void check_header(const SafetensorsHeader& header, size_t data_size) {
  size_t covered = 0;
  for (const TensorEntry& entry : header.entries) {
    ensure(entry.begin == covered && entry.end >= entry.begin, "the tensors do not cover the data");
    covered = entry.end;
  }
  ensure(covered == data_size, "the tensors do not cover all of the data");

  std::vector<TensorEntry> entries = header.entries;
  const std::string file = safetensors_preamble(entries, header.metadata, "again") + std::string(data_size, 'x');
  ensure((file.size() - data_size) % 8 == 0, "the data is not aligned");
  const SafetensorsView again = view_safetensors(file, "again");
  ensure(again.header.metadata == header.metadata && again.header.entries.size() == entries.size(), "the header reads back otherwise");
  for (size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry& one = header.entries[i];
    const TensorEntry& other = again.header.entries[i];
    ensure(one.name == other.name && one.type == other.type && one.type_name == other.type_name && one.shape == other.shape &&
               one.begin == other.begin && one.end == other.end,
           "a tensor reads back otherwise");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const SafetensorsView view = view_safetensors(bytes, "fuzz");
    ensure(view.data.size() <= size, "data beyond the file");
    check_header(view.header, view.data.size());
  } catch (const UsageError&) {
  }
  if (size == 0) return 0;
  try {
    check_header(parse_safetensors_header(bytes.substr(1), data[0], "fuzz"), data[0]);
  } catch (const UsageError&) {
  }
  return 0;
}
