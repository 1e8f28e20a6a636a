#pragma once
// An append-only file of byte records: after a crash each record is complete or absent. Independent of what the records mean.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"

namespace kedge {

// The records at the front of a journal's bytes, up to the first that is incomplete or damaged; `size` of the bytes belong to them.
struct JournalRecords {
  std::vector<std::string_view> records;
  size_t size = 0;
};
[[nodiscard]] JournalRecords read_journal(std::string_view bytes);

// For one writer; not thread-safe.
class Journal {
 public:
  // Opened if it exists, else created; the folder must exist. An incomplete record at its end is cut off with a warning.
  explicit Journal(const Path& file);

  // On disk when it returns; after an Error, it is not in the journal.
  void append(std::string_view record);

  [[nodiscard]] int64_t size() const { return num_records_; }
  [[nodiscard]] const Path& path() const { return file_.path(); }

 private:
  AppendFile file_;
  int64_t num_records_ = 0;
};

}  // namespace kedge
