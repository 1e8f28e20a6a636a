#pragma once
// A trainer of one number, for what is done with trainers of any kind.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/train/loop.h"

namespace kedge::testing {

// Its weight is a function of all steps before; what it is asked to do is written down.
class ToyTrainer final : public Trainer {
 public:
  std::vector<std::string> calls;
  mutable std::vector<int64_t> saved;       // after so many steps
  int64_t raise_at = -1, signal = 0;        // after so many steps
  int64_t interrupt_at = -1;                // a signal finds it waiting in the step that would make so many
  bool interrupt_load = false;              // and when it is loaded
  std::chrono::milliseconds write_time{0};  // of its folder in a checkpoint
  mutable std::atomic<int64_t> num_written = 0;
  mutable std::vector<int64_t> written_before;  // that were written when each save began
  mutable std::vector<bool> copied;             // may training go on while each is written?
  int64_t fails_at = -1;                        // the save after so many steps cannot be written
  std::map<int64_t, StepReport> extra;          // what the step that makes so many reports besides
  std::map<int64_t, Alarm> validation_alarms;   // of the validation after so many steps

  StepReport train_step() override {
    if (steps_ + 1 == interrupt_at) interrupt();
    weight_ = weight_ * 1.5 + 1;
    ++steps_;
    calls.push_back("step");
    if (steps_ == raise_at) ::raise(static_cast<int>(signal));
    StepReport report = extra[steps_];
    report.metrics.set("train/weight", weight_);
    return report;
  }
  void rehearse() override { calls.push_back("rehearse"); }
  StepReport validate() override {
    calls.push_back("validate");
    StepReport report{.metrics = {{"validation/loss", -weight_}, {"validation_more/loss", 7}},
                      .samples = {{"validation", {{.prompt = "p", .response = "r", .reward = 1}}}}};
    if (const auto found = validation_alarms.find(steps_); found != validation_alarms.end()) report.alarm = found->second;
    return report;
  }
  Counters counters() const override { return {{"consumed_samples", steps_ * 8}}; }
  FolderWriter save(StateSnapshot& state) const override {
    saved.push_back(steps_);
    written_before.push_back(num_written);
    copied.push_back(state.copies());
    state.set("weight", weight_);
    state.set("steps", steps_);
    return [this, weight = weight_, fails = steps_ == fails_at](const Path& folder) {
      std::this_thread::sleep_for(write_time);
      if (fails) throw Error("no room left");
      ++num_written;
      make_folder(folder);
      write_atomic(folder / "weight", std::to_string(weight));
    };
  }
  void load(const StateFiles& state) override {
    if (interrupt_load) interrupt();
    weight_ = state.at("weight").as_number("weight");
    steps_ = state.at("steps").as_integer("steps");
  }

 private:
  static void interrupt() { throw Interrupted(SIGTERM, "SIGTERM received while the server was unavailable"); }

  double weight_ = 0;
  int64_t steps_ = 0;
};

}  // namespace kedge::testing
