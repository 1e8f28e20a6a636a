#pragma once
// Writes a JSON Lines file row by row; the file appears under its name when it is complete, or not at all.
#include <cstdint>
#include <fstream>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

class JsonlWriter {
 public:
  // Rows go to a file next to `path` until commit().
  explicit JsonlWriter(const Path& path);
  ~JsonlWriter();
  JsonlWriter(const JsonlWriter&) = delete;
  JsonlWriter& operator=(const JsonlWriter&) = delete;

  void append(const Json& row);
  void commit();
  [[nodiscard]] int64_t num_rows() const { return num_rows_; }

 private:
  Path path_, temporary_;
  std::ofstream out_;
  int64_t num_rows_ = 0;
  bool committed_ = false;
};

}  // namespace kedge
