#pragma once
// The examples of one split: rows of a file, of a part of it, or of several files blended by weight. An example is one row, or
// several that belong together. Independent of a row's contents. Safe to use from several threads.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kedge/data/files/blend.h"
#include "kedge/data/files/data_prefix.h"
#include "kedge/data/files/jsonl_file.h"

namespace kedge {

class Rows {
 public:
  struct Part {
    std::shared_ptr<const JsonlFile> file;  // shared by the splits that are cut from it
    int64_t begin = 0, end = 0;             // in examples
    double weight = 1;
  };

  explicit Rows(std::vector<Part> parts, int64_t rows_per_example = 1);
  // All of a file, or of several.
  Rows(const std::vector<WeightedFile>& files, int64_t rows_per_example);
  static Rows of_file(const Path& path, int64_t rows_per_example = 1);

  [[nodiscard]] int64_t size() const { return blend_.size(); }
  [[nodiscard]] int64_t rows_per_example() const { return rows_per_example_; }
  // `row` counts within the example.
  [[nodiscard]] Row row(int64_t example, int64_t row = 0) const;
  [[nodiscard]] std::string where(int64_t example, int64_t row = 0) const;
  [[nodiscard]] int64_t line(int64_t example) const;
  // The files' names, for messages.
  [[nodiscard]] std::string name() const;

 private:
  struct Place {
    const JsonlFile& file;
    int64_t row;
  };
  [[nodiscard]] Place place(int64_t example, int64_t row) const;

  std::vector<Part> parts_;
  int64_t rows_per_example_;
  Blend blend_;
};

// Examples in a file whose rows are taken `rows_per_example` at a time; a remainder is a UsageError.
[[nodiscard]] int64_t num_examples(const JsonlFile& file, int64_t rows_per_example);

// The splits that `data_prefix` describes, by name; a split that gets no rows is not among them.
[[nodiscard]] std::map<std::string, Rows> open_splits(const DataPrefix& prefix, int64_t rows_per_example = 1);

// Calls `visit` for every example in no particular order, from several threads. Of several errors, that of the first example is
// thrown.
void for_each_example(int64_t num_examples, const std::function<void(int64_t)>& visit);

}  // namespace kedge
