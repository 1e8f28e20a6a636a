#include "kedge/train/checkpoint/journal.h"

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

// Before every record: its length and a checksum of length and bytes, 8 bytes each, little-endian.
constexpr size_t kHeader = 16;

std::string number_bytes(uint64_t number) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

uint64_t read_number(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return number;
}

// FNV-1a over words of 8 bytes, the last one filled up with zeros: records are large, and this is not cryptographic. Every step can
// be undone, so bytes that differ in one word never have the same sum.
uint64_t checksum(std::string_view record) {
  uint64_t hash = 0xCBF29CE484222325U;
  const auto mix = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001B3U; };
  mix(record.size());
  size_t at = 0;
  for (; at + 8 <= record.size(); at += 8) mix(read_number(record.substr(at)));
  std::string rest(record.substr(at));
  rest.resize(8);
  mix(read_number(rest));
  return hash;
}

}  // namespace

JournalRecords read_journal(std::string_view bytes) {
  JournalRecords found;
  while (bytes.size() - found.size >= kHeader) {
    const std::string_view rest = bytes.substr(found.size);
    const uint64_t length = read_number(rest), sum = read_number(rest.substr(8));
    if (length > rest.size() - kHeader) break;
    const std::string_view record = rest.substr(kHeader, length);
    if (checksum(record) != sum) break;
    found.records.push_back(record);
    found.size += kHeader + length;
  }
  return found;
}

Journal::Journal(const Path& file) : file_(file) {
  const MappedFile bytes(file);
  const JournalRecords found = read_journal(bytes.text());
  num_records_ = static_cast<int64_t>(found.records.size());
  if (found.size < bytes.size()) {
    log_warn(file.string(), ": ", bytes.size() - found.size, " bytes after record ", num_records_,
             " are incomplete or damaged, as after a crash, and are cut off");
    file_.cut_back(static_cast<int64_t>(found.size));
  }
  file_.sync();
}

void Journal::append(std::string_view record) {
  const int64_t before = file_.size();
  try {
    file_.append(number_bytes(record.size()) + number_bytes(checksum(record)));
    file_.append(record);
    file_.sync();
  } catch (const Error&) {
    file_.cut_back(before);
    throw;
  }
  ++num_records_;
}

}  // namespace kedge
