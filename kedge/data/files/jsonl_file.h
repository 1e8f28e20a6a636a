#pragma once
// The rows of a JSON Lines file (or of a file that is one JSON list), read in place: the file is mapped to find its rows, only
// the index of them is kept, and a row is read on request. gzip is unpacked first. Safe to use from several threads.
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/data/files/jsonl_index.h"
#include "kedge/data/files/row_error.h"

namespace kedge {

class JsonlFile;

// One parsed row, always an object. Errors about it open with file and line. The file must outlive it.
class Row {
 public:
  Row(Json json, const JsonlFile& file, int64_t index) : json_(std::move(json)), file_(&file), index_(index) {}

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] Json take_json() { return std::move(json_); }
  [[nodiscard]] std::string where() const;  // "train.jsonl:12"
  [[nodiscard]] int64_t line() const;

  [[nodiscard]] const Json* find(std::string_view key) const { return json_.find(key); }
  // The fields of that name; a RowError if it is missing or of another kind.
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;

  [[noreturn]] void fail(RowFault fault, std::string_view what) const;
  // RowError: "train.jsonl:12: no WHAT field; the row has "a", "b"; REMEDY", which may be empty.
  [[noreturn]] void fail_missing(std::string_view what, std::string_view remedy) const;
  // RowError: "train.jsonl:12: WHAT: expected a string, found 3".
  [[noreturn]] void fail_type(std::string_view what, std::string_view wanted, const Json& found) const;

 private:
  Json json_;
  const JsonlFile* file_;
  int64_t index_;
};

class JsonlFile {
 public:
  // A file without rows is a UsageError.
  explicit JsonlFile(const Path& path);
  JsonlFile(const JsonlFile&) = delete;
  JsonlFile& operator=(const JsonlFile&) = delete;

  [[nodiscard]] int64_t size() const { return index_.size(); }
  [[nodiscard]] const Path& path() const { return path_; }
  [[nodiscard]] Row row(int64_t row) const;
  // The row's bytes as in the file.
  [[nodiscard]] std::string bytes(int64_t row) const;
  [[nodiscard]] std::string where(int64_t row) const;
  [[nodiscard]] int64_t line(int64_t row) const;

 private:
  Path path_;
  MappedFile mapped_;
  size_t start_;  // after a byte-order mark
  JsonlIndex index_;
};

}  // namespace kedge
