#pragma once
// Texts with attribute values, {"text", "label": [4, 0, ...]}, for regression reward models.
#include <vector>

#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct RegressionExample {
  int64_t id = 0;      // what was asked for
  int64_t source = 0;  // the row it came from: another where that one is too long
  TokenIds ids = {};
  std::vector<double> labels = {};
  bool masked = false;  // a stand-in: nothing is to be learnt from it
};

// The row's attribute values; a RowError unless there are as many as wanted, all finite numbers.
[[nodiscard]] std::vector<double> read_labels(const Row& row, const FieldNames& names, int64_t num_attributes);

// Safe to use from several threads.
class RegressionDataset {
 public:
  // Reads every row once, so that a broken one is refused at load.
  RegressionDataset(Rows rows, TextEncoder encoder, const DataConfig& config, int64_t num_attributes, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return kept_.size(); }
  [[nodiscard]] RegressionExample get(int64_t index) const;
  [[nodiscard]] int64_t num_replaced() const { return replacements_.count(); }
  [[nodiscard]] int64_t num_dropped() const { return kept_.num_dropped(); }

 private:
  [[nodiscard]] std::optional<RegressionExample> read(int64_t row) const;

  Rows rows_;
  TextEncoder encoder_;
  DataConfig config_;
  int64_t num_attributes_;
  PromptReader reader_;
  KeptRows kept_;
  Replacements replacements_;
};

}  // namespace kedge
