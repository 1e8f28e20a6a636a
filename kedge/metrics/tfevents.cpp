#include "kedge/metrics/tfevents.h"

#include <array>
#include <bit>
#include <utility>

#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[byte] = crc;
  }
  return table;
}

template <typename Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>((value >> (8 * byte)) & 0xFFU);
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

// A protocol-buffer message under construction; fields are numbered as in the .proto files named below.
class Message {
 public:
  Message& integer(uint32_t field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& fixed(uint32_t field, double value) {
    key(field, 1);
    append_little_endian(bytes_, std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& fixed(uint32_t field, float value) {
    key(field, 5);
    append_little_endian(bytes_, std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  void key(uint32_t field, uint32_t wire_type) { varint((field << 3U) | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// event.proto
Message event(double wall_time, int64_t step) { return std::move(Message().fixed(1, wall_time).integer(2, step)); }
constexpr uint32_t kFileVersion = 3, kSummary = 5, kSessionLog = 7;  // fields of Event
constexpr int64_t kSessionStart = 1;                                 // SessionLog.status

// summary.proto, tensor.proto, types.proto
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;  // fields of Summary.Value
constexpr int64_t kDataClassTensor = 2, kTypeString = 7;

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

std::string tf_record(std::string_view data) {
  std::string record;
  append_little_endian(record, uint64_t{data.size()});
  append_little_endian(record, masked_crc32c(record));
  record += data;
  append_little_endian(record, masked_crc32c(data));
  return record;
}

std::string version_event(double wall_time) { return event(wall_time, 0).text(kFileVersion, "brain.Event:2").take(); }

std::string session_start_event(double wall_time, int64_t step) {
  return event(wall_time, step).message(kSessionLog, Message().integer(1, kSessionStart)).take();
}

std::string scalars_event(double wall_time, int64_t step, const Metrics& metrics) {
  Message summary;
  for (const auto& [name, value] : metrics)
    summary.message(kSummaryValue, Message().text(kTag, utf8_replace_invalid(name)).fixed(kSimpleValue, static_cast<float>(value)));
  return event(wall_time, step).message(kSummary, summary).take();
}

std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view markdown) {
  const Message plugin = std::move(Message().text(1, "text"));
  const Message metadata = std::move(Message().message(1, plugin).integer(4, kDataClassTensor));
  const Message shape;  // no dimensions: one string
  const Message tensor = std::move(Message().integer(1, kTypeString).message(2, shape).text(8, utf8_replace_invalid(markdown)));
  const Message value = std::move(Message().text(kTag, utf8_replace_invalid(tag)).message(kMetadata, metadata).message(kTensor, tensor));
  return event(wall_time, step).message(kSummary, std::move(Message().message(kSummaryValue, value))).take();
}

}  // namespace kedge
