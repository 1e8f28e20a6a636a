#pragma once
// JSON lines with prompts to JSON lines with completions.
#include <functional>
#include <map>

#include "cli/generation.h"
#include "cli/text/json_lines.h"
#include "cli/text/ordered_output.h"
#include "cli/text/row_progress.h"

namespace kedge::cli {

// Not thread-safe. `generation` and `options` must outlive it.
class LineGenerator {
 public:
  LineGenerator(Generation& generation, const GenerateOptions& options);

  // A prompt that cannot be served is a UsageError.
  void add(const Json& line, const std::string& where);
  // Runs everything to its end: what was added, and the lines from `next`, which are read as the engine has room. A prompt that
  // cannot be served becomes a line with the error; a line without a prompt is a UsageError. Returns the signal that stopped it, if
  // any: then incomplete completions are left out.
  [[nodiscard]] std::optional<int> run(const std::function<std::optional<JsonLine>(const StopQuestion&)>& next);

  [[nodiscard]] std::string summary() const { return progress_.summary(); }
  [[nodiscard]] int64_t num_failed() const { return num_failed_; }  // lines with an error

 private:
  struct Row {
    int64_t index = 0;
    Json line;
    TokenIds prompt;
    int64_t num_open = 0;
  };

  void add_or_refuse(const JsonLine& line);
  void step();
  void end(const Completion& completion);
  [[nodiscard]] Json line_of(const Row& row) const;

  Generation& generation_;
  const GenerateOptions& options_;
  std::map<int64_t, Row> rows_;  // by the engine's number
  int64_t next_index_ = 0;
  int64_t num_open_ = 0, num_failed_ = 0;  // completions
  LineOrder order_;
  RowProgress progress_;
};

}  // namespace kedge::cli
