#pragma once
// Texts with attribute values, {"text", "label": [4, 0, ...]}, for regression reward models.
#include <vector>

#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct RegressionExample {
  int64_t id = 0;      // the requested index
  int64_t source = 0;  // the row it came from: another if that one is too long
  TokenIds ids = {};
  std::vector<double> labels = {};
  bool masked = false;  // a replacement: masked
};

// The row's attribute values; a RowError unless there are as many as expected, all finite.
[[nodiscard]] std::vector<double> read_labels(const Row& row, const FieldNames& names, int64_t num_attributes);

// Safe to use from several threads.
class RegressionDataset {
 public:
  // Encodes every row once, so that a broken one is refused at load. Rows that make one example of `rows` stay neighbours.
  RegressionDataset(Rows rows, TextEncoder encoder, const DataConfig& config, int64_t num_attributes, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return kept_.size(); }
  [[nodiscard]] RegressionExample get(int64_t index) const;
  [[nodiscard]] int64_t num_replaced() const { return replacements_.count(); }
  [[nodiscard]] int64_t num_dropped() const { return kept_.num_dropped(); }

 private:
  [[nodiscard]] std::optional<RegressionExample> read(int64_t row) const;
  [[nodiscard]] std::string where(int64_t row) const;

  Rows rows_;
  TextEncoder encoder_;
  DataConfig config_;
  int64_t num_attributes_;
  PromptReader reader_;
  KeptRows kept_;
  Replacements replacements_;
};

}  // namespace kedge
