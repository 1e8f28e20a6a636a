#include "kedge/train/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "kedge/metrics/jsonl.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

// Its weight is a function of all steps before; what it is asked to do is written down.
class ToyTrainer final : public Trainer {
 public:
  std::vector<std::string> calls;
  int64_t raise_at = -1, signal = 0;  // after so many steps

  StepReport train_step() override {
    weight_ = weight_ * 1.5 + 1;
    ++steps_;
    calls.push_back("step");
    if (steps_ == raise_at) ::raise(static_cast<int>(signal));
    return {.metrics = {{"train/weight", weight_}}};
  }
  StepReport validate() override {
    calls.push_back("validate");
    return {.metrics = {{"validation/loss", -weight_}, {"validation_more/loss", 7}},
            .samples = {{"validation", {{.prompt = "p", .response = "r", .reward = 1}}}}};
  }
  Counters counters() const override { return {{"consumed_samples", steps_ * 8}}; }
  FolderWriter save(StateSnapshot& state) const override {
    state.set("weight", weight_);
    state.set("steps", steps_);
    return [weight = weight_](const Path& folder) {
      make_folder(folder);
      write_atomic(folder / "weight", std::to_string(weight));
    };
  }
  void load(const StateFiles& state) override {
    weight_ = state.at("weight").as_number("weight");
    steps_ = state.at("steps").as_integer("steps");
  }

 private:
  double weight_ = 0;
  int64_t steps_ = 0;
};

// A run in a folder, as a command makes it.
struct ToyRun {
  ToyTrainer trainer;
  std::optional<StopSignals> signals;

  LoopResult run(const Path& folder, const LoopOptions& options) {
    MetricsLog log(true);
    log.add<JsonlSink>(folder, [] { return 0.0; });
    CheckpointStore store(folder / "checkpoints", {.save_top_k = 1, .filename = "run-{step}-{val_loss:.2f}"});
    const auto newest = store.newest();
    const int64_t step = newest ? restore(trainer, log, *newest) : 0;
    BackgroundSaver saver(store);
    signals.emplace();
    const LoopResult result = run_loop({trainer, Group::single(), log, &saver, *signals}, options, step);
    signals.reset();
    return result;
  }
};

LoopOptions options_of(int64_t max_steps, int64_t validate, int64_t save) {
  LoopOptions options;
  options.steps = {4, max_steps};
  options.intervals = {max_steps, validate, save, true};
  return options;
}

// Metrics without the times that differ between runs.
std::vector<std::string> lines_of(const Path& folder) {
  std::vector<std::string> lines;
  for (const MetricsLine& line : read_metrics(folder / "metrics.jsonl")) {
    std::string text = std::to_string(line.step);
    for (const auto& [name, value] : line.metrics)
      if (name != "train/step_time" && !name.starts_with("timers/")) text += " " + name + " " + shortest(value);
    lines.push_back(text);
  }
  return lines;
}

TEST(Loop, StepsValidatesAndSavesWhenDue) {
  const TempFolder temp;
  ToyRun toy;
  const LoopResult result = toy.run(temp.path(), options_of(5, 2, 4));
  EXPECT_EQ(result.reason, "complete");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.step, 5);
  EXPECT_THAT(toy.trainer.calls, ElementsAre("step", "step", "validate", "step", "step", "validate", "step", "validate"));
  EXPECT_THAT(lines_of(temp.path()),
              ElementsAre("0 train/weight 1.0 train/epoch 1.0", "1 train/weight 2.5 train/epoch 1.0",
                          "2 validation/loss -2.5 validation_more/loss 7.0", "2 train/weight 4.75 train/epoch 1.0",
                          "3 train/weight 8.125 train/epoch 1.0", "4 validation/loss -8.125 validation_more/loss 7.0",
                          "4 train/weight 13.1875 train/epoch 2.0", "5 validation/loss -13.1875 validation_more/loss 7.0"));
  const CheckpointStore store(temp / "checkpoints", {});
  const Checkpoint newest = *store.newest();
  EXPECT_EQ(newest.folder.filename(), "run-step=5-val_loss=-13.19-last");
  EXPECT_EQ(newest.meta.counters.at("consumed_samples"), 40);
  EXPECT_EQ(newest.meta.counters.at("epoch"), 1);
  EXPECT_EQ(read_text(newest.folder / "model" / "weight"), "13.187500");
}

TEST(Loop, ARunInPiecesIsTheWholeRun) {
  const TempFolder whole, parts;
  ToyRun one;
  static_cast<void>(one.run(whole.path(), options_of(11, 2, 4)));
  for (const int64_t stop : {3, 6, 9}) {
    ToyRun toy;
    toy.trainer.raise_at = stop;
    toy.trainer.signal = SIGTERM;
    const LoopResult result = toy.run(parts.path(), options_of(11, 2, 4));
    EXPECT_EQ(result.reason, "SIGTERM");
    EXPECT_EQ(result.exit_code, 143);
    EXPECT_EQ(result.step, stop);
  }
  ToyRun last;
  EXPECT_EQ(last.run(parts.path(), options_of(11, 2, 4)).reason, "complete");
  EXPECT_EQ(lines_of(parts.path()), lines_of(whole.path()));
}

TEST(Loop, SavesThatBlockAreDoneWhenTheNextStepBegins) {
  const TempFolder temp, other;
  ToyRun toy, background;
  LoopOptions options = options_of(5, 2, 2);
  static_cast<void>(background.run(other.path(), options));
  options.saves_block = true;
  static_cast<void>(toy.run(temp.path(), options));
  EXPECT_EQ(CheckpointStore(temp / "checkpoints", {}).newest()->step(), 5);
  EXPECT_EQ(lines_of(temp.path()), lines_of(other.path()));
}

TEST(Loop, ASignalSavesButDoesNotValidate) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.raise_at = 3;
  toy.trainer.signal = SIGUSR1;
  EXPECT_EQ(toy.run(temp.path(), options_of(10, 2, 4)).exit_code, 138);
  EXPECT_THAT(toy.trainer.calls, ElementsAre("step", "step", "validate", "step"));
  EXPECT_EQ(CheckpointStore(temp / "checkpoints", {}).newest()->step(), 3);
}

TEST(Loop, TheTimeLimitValidatesSavesAndEndsWell) {
  const TempFolder temp;
  ToyRun toy;
  LoopOptions options = options_of(10, 4, 8);
  options.time_limit = std::chrono::seconds(0);
  const LoopResult result = toy.run(temp.path(), options);
  EXPECT_EQ(result.reason, "time limit");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(toy.trainer.calls, ElementsAre("step", "validate"));
  EXPECT_EQ(CheckpointStore(temp / "checkpoints", {}).newest()->step(), 1);
}

TEST(Loop, ACompleteRunHasNothingToDo) {
  const TempFolder temp;
  ToyRun first, again;
  static_cast<void>(first.run(temp.path(), options_of(4, 2, 2)));
  EXPECT_EQ(again.run(temp.path(), options_of(4, 2, 2)).reason, "complete");
  EXPECT_TRUE(again.trainer.calls.empty());
}

// A disk that takes nothing: the run goes on to its end, and then fails.
TEST(Loop, ACheckpointThatCannotBeWrittenFailsAtTheEnd) {
  const TempFolder temp;
  ToyRun toy;
  CheckpointStore store(temp / "checkpoints", {.filename = "run-{step}"});
  BackgroundSaver saver(store);
  MetricsLog log(false);
  const StopSignals signals;
  const testing::FileSizeLimit nothing(0);
  EXPECT_THAT(error_of<Error>([&] {
                return run_loop({toy.trainer, Group::single(), log, &saver, signals}, options_of(4, 0, 2), 0);
              }),
              HasSubstr("the checkpoint of step 4 could not be saved"));
  EXPECT_THAT(toy.trainer.calls, ElementsAre("step", "step", "step", "step"));
}

TEST(Loop, WithoutASaverNothingIsSaved) {
  ToyRun toy;
  MetricsLog log(false);
  const StopSignals signals;
  EXPECT_EQ(run_loop({toy.trainer, Group::single(), log, nullptr, signals}, options_of(4, 0, 2), 0).step, 4);
}

TEST(Loop, MonitorsHaveTheReferencesNames) {
  const auto monitors = monitors_of({{"train/loss", 1}, {"validation/acc", 2}, {"validation_more/acc", 3}, {"timers/x", 4}});
  EXPECT_EQ(monitors, (std::map<std::string, double>{{"train_loss", 1}, {"val_acc", 2}}));
}

}  // namespace
}  // namespace kedge
