#pragma once
// A summary of a run's folder: what was trained, on what data, how far it got, whether it worked. Reads
// only; what it cannot find it leaves out.
#include <optional>
#include <string>
#include <vector>

#include "kedge/inspect/model_summary.h"
#include "kedge/inspect/run_numbers.h"
#include "kedge/inspect/run_on_disk.h"

namespace kedge {

// An input file of the run, and whether it changed since.
struct StoryFile {
  enum class State { same, changed, gone };
  Path path;
  State state = State::same;
  std::optional<int64_t> num_lines = {};  // of text files that exist and are not huge
};

struct StoryCheckpoint {
  Path folder;
  int64_t step = 0;
  int64_t bytes = 0;
  bool is_best = false, is_last = false;
  std::optional<double> number = {};  // by which it is ranked
};

// How far a run got, and how it ended.
struct RunEnd {
  std::string status = {};                 // "complete", "running", "ended: SIGTERM", ...
  int64_t step = 0, max_steps = 0;         // 0: not known
  std::optional<int64_t> model_step = {};  // of FOLDER/model; none: not known
};

struct RunOverview : RunEnd {
  RunOnDisk run;
  std::string title;  // "kedge reinforce", "kedge serve critic"
  Json settings;      // config.yaml
  Path model_folder;  // what it started from, as the settings name it; empty: not known
  std::optional<NetworkFacts> network = {};
  std::vector<StoryFile> model_files = {}, data_files = {};
  std::vector<std::string> rewards = {};  // one source each, for people
  std::string critic = {};                // its server; empty without one

  std::vector<Series> metrics = {};  // all of metrics.jsonl
  RunNumbers numbers = {};           // conclusions from them
  LogFindings log = {};
  std::vector<Hint> hints = {};
  std::string monitor;
  std::vector<StoryCheckpoint> checkpoints = {};
  bool has_model = false;  // FOLDER/model

  // The newest start, as run.json has it.
  [[nodiscard]] const Json& last_start() const { return run.starts.as_array("run.json").back(); }
};

[[nodiscard]] RunOverview read_run_story(const Path& folder);

[[nodiscard]] std::string title_of(const RunOnDisk& run);  // "kedge reinforce", "kedge serve critic"
// What summary.json says, unless the run continued after it. `num_steps` have metrics; `has_error`: the last line of its log is one.
[[nodiscard]] RunEnd end_of(const RunOnDisk& run, int64_t num_steps, bool has_error);

// A member by its dotted name; null if there is none.
[[nodiscard]] const Json* setting(const Json& settings, std::string_view name);
[[nodiscard]] std::string setting_text(const Json& settings, std::string_view name);  // as a person writes it; "" for none and null

// How checkpoints of the run are ranked.
[[nodiscard]] CheckpointConfig ranking_of(const Json& settings);

// The settings of a run: its config.yaml.
[[nodiscard]] Json read_settings(const RunOnDisk& run);

// A shell command line that repeats it: cd FOLDER && kedge ...
[[nodiscard]] std::string command_of(const RunOverview& overview);
[[nodiscard]] std::string quoted(const std::string& word);

}  // namespace kedge
