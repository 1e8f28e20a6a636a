#include "kedge/data/sets/regression_dataset.h"

#include <cmath>

#include "kedge/core/log.h"

namespace kedge {

std::vector<double> read_labels(const Row& row, const FieldNames& names, int64_t num_attributes) {
  const std::string key = names.label.value_or("label");
  const Json& value = row.at(key);
  if (!value.is_array()) row.fail_type(str("\"", key, "\""), "a list of numbers", value);
  std::vector<double> labels;
  for (const Json& item : value.as_array("")) {
    if (!item.is_number()) row.fail_type(str("\"", key, "\"[", labels.size(), "]"), "a number", item);
    labels.push_back(item.as_number(""));
    if (!std::isfinite(labels.back())) row.fail(RowFault::bad_value, str("\"", key, "\": a number that is not finite"));
  }
  if (static_cast<int64_t>(labels.size()) != num_attributes)
    row.fail(RowFault::bad_value,
             str("\"", key, "\": ", labels.size(), " numbers; expected ", num_attributes, " (regression.num_attributes)"));
  return labels;
}

RegressionDataset::RegressionDataset(Rows rows, TextEncoder encoder, const DataConfig& config, int64_t num_attributes, ChatRenderer chat)
    : rows_(std::move(rows)),
      encoder_(std::move(encoder)),
      config_(config),
      num_attributes_(num_attributes),
      reader_(config, std::move(chat)),
      kept_(rows_.size() * rows_.rows_per_example()),
      replacements_(str("texts of at most ", config.seq_length, " tokens")) {
  kept_.filter([&](int64_t row) { return read(row).has_value() || !config_.drop_over_long; });
  check(size() > 0, rows_.name(), ": no text has at most ", config_.seq_length, " tokens");
  if (num_dropped() > 0) log_warn_of_job(rows_.name(), ": left out ", num_dropped(), " texts of more than ", config_.seq_length, " tokens");
}

std::optional<RegressionExample> RegressionDataset::read(int64_t number) const {
  const int64_t together = rows_.rows_per_example();
  const Row row = rows_.row(number / together, number % together);
  RegressionExample example{number, number, encode_text(encoder_, ends_of(config_), reader_.text(row)),
                            read_labels(row, config_.names, num_attributes_)};
  if (example.ids.empty()) row.fail(RowFault::empty_prompt, "a text without tokens");
  encoder_.check_ids(example.ids, [&] { return row.where(); });
  if (static_cast<int64_t>(example.ids.size()) > config_.seq_length) return std::nullopt;
  return example;
}

std::string RegressionDataset::where(int64_t number) const {
  return rows_.where(number / rows_.rows_per_example(), number % rows_.rows_per_example());
}

RegressionExample RegressionDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": row ", index, " of ", size());
  auto example = replacements_.find<RegressionExample>(
      index, size(), [&](int64_t i) { return read(kept_[i]); }, [&](int64_t i) { return where(kept_[i]); });
  example.id = index;
  example.masked = example.source != kept_[index];
  return example;
}

}  // namespace kedge
