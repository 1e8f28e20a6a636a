#pragma once
// Append-only JSON lines that survive a crash: one value per line, a line cut short by a crash is dropped, and the file can be truncated
// to its size at a checkpoint. Independent of what the lines mean.
#include <cstdint>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

// For one writer; not thread-safe.
class JsonlLog {
 public:
  // Opens or creates; a last line without its newline is dropped with a warning.
  explicit JsonlLog(const Path& path);

  // The complete line or, with an Error, nothing of it.
  void append(const Json& value);
  void sync() { file_.sync(); }

  // Where the next line will start: what a checkpoint keeps, after `sync`.
  [[nodiscard]] int64_t offset() const { return file_.size(); }
  // Removes every line from that offset on. An offset outside the file or inside a line is a UsageError.
  void cut_back(int64_t offset);
  [[nodiscard]] const Path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

// Is that byte the start of the file, or right after a line in it?
[[nodiscard]] bool starts_a_line(const Path& path, int64_t offset);

struct JsonlLine {
  int64_t number;  // from 1
  int64_t offset;  // of its first byte
  Json value;
};

// Every complete line. A last line without its newline is ignored: a crash, or an active writer. A line that is not JSON
// is a UsageError: "metrics.jsonl:12:40: not valid JSON: ...".
[[nodiscard]] std::vector<JsonlLine> read_jsonl(const Path& path);

}  // namespace kedge
