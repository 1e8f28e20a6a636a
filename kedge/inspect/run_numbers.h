#pragma once
// Conclusions from the metrics and the log of a run: did it improve, and where might it have gone wrong? Knows the names of metrics, no
// folders.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/inspect/run_trends.h"
#include "kedge/metrics/jsonl.h"

namespace kedge {

// A metric worth a line.
struct NumberRow {
  std::string name;   // "train_rollouts/rewards"
  std::string label;  // "reward"
  Wanted wanted = Wanted::any;
  bool is_share = false;  // shown in percent
  Series series = {};
};

// "0.25", or "25 %" of a share.
[[nodiscard]] std::string figure(double value, const NumberRow& row);

struct RunNumbers {
  std::vector<NumberRow> rows = {};  // those that exist, what was trained on first
  std::vector<Series> watched = {};  // only checked for finite values
  int64_t num_steps = 0;             // with metrics
  double seconds = 0;                // in steps and validations
  double first_time = 0, last_time = 0;

  [[nodiscard]] const NumberRow* find(std::string_view name) const;
  // The metric that shows whether training worked: the trained reward, else the loss. Null if there is none.
  [[nodiscard]] const NumberRow* main() const;
};

// All of a run's metrics, a series each; of several numbers of one step (its updates) the last counts.
[[nodiscard]] RunNumbers read_numbers(std::span<const Series> metrics);
[[nodiscard]] RunNumbers read_numbers(std::span<const MetricsLine> lines);  // with their times

struct Hint {
  int64_t step = 0;
  std::string what;
};

// By step. `max_kl` is the run's own limit, in nats per token; 0: none.
[[nodiscard]] std::vector<Hint> find_hints(const RunNumbers& numbers, double max_kl);

// Warnings and errors in a run's log.txt, with the step they name or else the newest that was reported before them.
struct LogFindings {
  std::optional<Hint> first_warning = {};
  std::optional<Hint> first_alarm = {};  // a run that watched its own health: "after step 17: ..."
  int64_t num_warnings = 0;
  std::optional<std::string> last_error = {};  // if the log's last line is one
};
[[nodiscard]] LogFindings read_log(std::string_view log);

// The main metric, and its validation: "reward rose from 3.4 to 8.9: better, by more than its noise".
[[nodiscard]] std::string verdict_of(const RunNumbers& numbers);

}  // namespace kedge
