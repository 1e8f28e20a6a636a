#pragma once
// How a run ended, as its summary.json says. Reads no checkpoints: they may be newer.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

struct RunSummary {
  std::string reason;                      // "complete", "SIGTERM", ...
  int64_t step = 0, max_steps = 0;         // max_steps: of the newest start
  std::optional<int64_t> model_step = {};  // of FOLDER/model, if the run left one; none in summaries from before there was this entry
  bool is_old = false;  // of an earlier start: it says nothing of how the newest one ended, unless that had nothing left to do

  [[nodiscard]] bool is_complete() const { return reason == "complete"; }
};

// None before the run has ended once. `starts`: FOLDER/run.json, with at least one.
[[nodiscard]] std::optional<RunSummary> read_run_summary(const Path& folder, const Json& starts);

}  // namespace kedge
