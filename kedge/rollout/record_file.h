#pragma once
// The file format of a step's answers: a line of JSON about the step, then one for each answer. The only writer and reader of
// it. Independent of runs: rollout_records.h decides which steps are kept, and which of them a resumed run may use.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

struct RecordHeader {
  int64_t step = 0;
  std::string fingerprint = {};  // of what the answers depend on
  int64_t num_rows = 0;
  // Hashes of the trained weights before the step and after its updates, and the metrics of each update. Records of older programs lack
  // them.
  std::string weights_before = {}, weights_after = {};
  std::vector<Metrics> updates = {};
};

// `header.num_rows` is ignored: the rows are counted.
[[nodiscard]] std::string format_record(const RecordHeader& header, const RolloutRows& rows);

// The first line. UsageError for one that is damaged; `name` is the file's, for the error.
[[nodiscard]] RecordHeader parse_record_header(std::string_view text, const std::string& name);

// What is read of a row. `answers`: its rollout (without the prompt's row of the data file), slot and reward; a number that is missing is
// an error. `all`: every number, for display; those that JSON lacks, stored as null, are NaN.
enum class RecordParts { answers, all };

// The rows. UsageError for a file that is cut short or damaged: "FILE:LINE: ...".
[[nodiscard]] RolloutRows parse_record_rows(std::string_view text, const std::string& name, RecordParts parts);

// FOLDER/step-N.jsonl.
[[nodiscard]] Path record_path(const Path& folder, int64_t step);
// The steps that have a file in the folder, rising. None if there is no such folder.
[[nodiscard]] std::vector<int64_t> recorded_steps(const Path& folder);
// Removes the files of the steps from `begin` to before `end`, the last one first. Returns how many.
int64_t remove_records(const Path& folder, int64_t begin, int64_t end);

}  // namespace kedge
