#pragma once
// The folder of a run as kedge reinforce leaves it, small: settings, a start, numbers, records of answers.
#include <memory>
#include <string>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/rollout/record_file.h"

#include "tests/support/temp_folder.h"

namespace kedge::testing {

struct ToyAnswer {
  std::string prompt, response;
  double reward = 0;
};

class RunToy {
 public:
  explicit RunToy(Path folder, const std::string& settings = "rollouts: {keep: all}\nmodel: {optim: {lr: 0.001}}\n")
      : folder_(std::move(folder)) {
    make_folder(folder_ / "rollouts");
    write_atomic(folder_ / "config.yaml", settings);
    write_atomic(folder_ / "run.json", R"([{"command_line": ["kedge", "reinforce"], "folder": "/there", "max_steps": 10}])");
  }

  // Lines of metrics.jsonl: a reward that rises, and times.
  void add_steps(int64_t begin, int64_t end) const {
    AppendFile file(folder_ / "metrics.jsonl");
    for (int64_t step = begin; step < end; ++step)
      file.append(str("{\"step\": ", step, ", \"time\": ", 1000 + step, ", \"train_rollouts/rewards\": ", step,
                      ", \"timers/generate\": 0.5, \"train/step_time\": 2.0}\n"));
  }

  void add_record(int64_t step, const std::vector<ToyAnswer>& answers) const {
    RolloutRows rows;
    for (const ToyAnswer& answer : answers) {
      Rollout rollout{.prompt_id = static_cast<int64_t>(rows.size()),
                      .ids = {1, 2, 3},
                      .prompt_length = 1,
                      .finished = true,
                      .prompt = answer.prompt,
                      .response = answer.response};
      rollout.logprobs = {-1, -1};
      RolloutRow row{.rollout = std::make_shared<const Rollout>(std::move(rollout)), .slot = static_cast<int64_t>(rows.size())};
      row.reward.value = answer.reward;
      row.advantage = -answer.reward;
      rows.push_back(std::move(row));
    }
    write_atomic(record_path(folder_ / "rollouts", step), format_record({.step = step, .fingerprint = "x"}, rows));
  }

  void add_sample(const std::string& line) const { AppendFile(folder_ / "samples.jsonl").append(line + "\n"); }

  [[nodiscard]] const Path& folder() const { return folder_; }

 private:
  Path folder_;
};

}  // namespace kedge::testing
