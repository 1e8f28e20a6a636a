#pragma once
// The bytes of TensorBoard's event files: a sequence of TFRecords, each a protocol-buffer message of type Event, both encoded
// here. Independent of files and folders.
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/metrics/metrics.h"

namespace kedge {

// CRC-32C (Castagnoli).
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

// Length, its checksum, the data, its checksum; checksums masked as TFRecord requires, all little-endian.
[[nodiscard]] std::string tf_record(std::string_view data);

// Events. Text that is not UTF-8 is repaired, because a reader rejects the event otherwise.
[[nodiscard]] std::string version_event(double wall_time);  // must open a file
// Readers drop what they read of `step` and later when a second one of these follows.
[[nodiscard]] std::string session_start_event(double wall_time, int64_t step);
// Numbers become 32-bit floats, the only scalars every reader knows.
[[nodiscard]] std::string scalars_event(double wall_time, int64_t step, const Metrics& metrics);
[[nodiscard]] std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view markdown);

}  // namespace kedge
