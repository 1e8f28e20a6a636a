#include "kedge/train/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "kedge/metrics/jsonl.h"

#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_trainer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::read_metrics;
using testing::TempFolder;
using testing::ToyTrainer;

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

// A critic elsewhere keeps only so many saves: one for every checkpoint that may be the newest here.
TEST(Loop, ASaveBeginsWhenTheOneBeforeIsWhole) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.write_time = std::chrono::milliseconds(30);
  static_cast<void>(toy.run(temp.path(), options_of(6, 2, 2)));
  EXPECT_THAT(toy.trainer.written_before, ElementsAre(0, 1, 2));
}

// One that fails may be followed by others: what is saved elsewhere is then saved only when all is written here.
TEST(Loop, AfterASaveThatFailedTheNextOneIsWaitedFor) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.fails_at = 2;
  toy.trainer.write_time = std::chrono::milliseconds(30);
  static_cast<void>(toy.run(temp.path(), options_of(8, 2, 2)));
  EXPECT_THAT(toy.trainer.copied, ElementsAre(true, false, true, true)) << "when one goes well they overlap with training again";
  EXPECT_TRUE(is_file(temp / "checkpoints" / "run-step=8-val_loss=-49.26-last" / "state" / "state.json"));
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

// The validation of step 2 says nothing of the weights of step 3.
TEST(Loop, ASignalsCheckpointDoesNotHaveTheNumberOfAnEarlierValidation) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.raise_at = 5;
  toy.trainer.signal = SIGTERM;
  static_cast<void>(toy.run(temp.path(), options_of(10, 2, 4)));
  const std::vector<Checkpoint> all = CheckpointStore(temp / "checkpoints", {}).list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].folder.filename(), "run-step=4-val_loss=-8.12");
  EXPECT_EQ(all[1].folder.filename(), "run-step=5-val_loss=nan-last");
  EXPECT_FALSE(all[1].meta.metrics.contains("val_loss"));
  EXPECT_TRUE(all[1].meta.metrics.contains("train_weight"));
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

TEST(Loop, ARehearsalComesBeforeTheFirstStepOfEveryStart) {
  const TempFolder temp;
  ToyRun first, second, complete;
  LoopOptions options = options_of(2, 0, 2);
  options.rehearses = true;
  static_cast<void>(first.run(temp.path(), options));
  EXPECT_THAT(first.trainer.calls, ElementsAre("rehearse", "step", "step"));
  options.steps.max_steps = options.intervals.max_steps = 3;
  static_cast<void>(second.run(temp.path(), options));
  EXPECT_THAT(second.trainer.calls, ElementsAre("rehearse", "step"));
  static_cast<void>(complete.run(temp.path(), options));
  EXPECT_THAT(complete.trainer.calls, ElementsAre()) << "nothing is left to be done";
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

TEST(Loop, UpdatesStandBeforeTheNumbersOfTheirStep) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.extra[2].updates = {{{"train_optim/loss", 3}, {"train_optim/lr", 0.5}}, {{"train_optim/loss", 2}}};
  const LoopResult result = toy.run(temp.path(), options_of(2, 0, 0));
  EXPECT_THAT(lines_of(temp.path()), ElementsAre("0 train/weight 1.0 train/epoch 1.0", "1 train_optim/loss 3.0 train_optim/lr 0.5",
                                                 "1 train_optim/loss 2.0", "1 train/weight 2.5 train/epoch 1.0"));
  EXPECT_EQ(result.last.find("train_optim/loss"), 2);
  EXPECT_EQ(result.last.find("train_optim/lr"), 0.5);
}

TEST(Loop, SamplesOfStepsAndValidationsAreKept) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.extra[2].samples = {{"train_rollouts", {{.prompt = "why", .response = "so", .reward = 2}}}};
  static_cast<void>(toy.run(temp.path(), options_of(2, 2, 0)));
  std::vector<std::string> rows;
  std::istringstream lines(read_text(temp / "samples.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line, "samples");
    rows.push_back(row.at("step", "row").dump() + row.at("table", "row").dump() + row.at("prompt", "row").dump());
  }
  EXPECT_THAT(rows, ElementsAre(R"(1"train_rollouts""why")", R"(2"validation""p")"));
}

TEST(Loop, AnAlarmSavesAtOnceAndTheRunGoesOn) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.extra[3].alarm = {.what = "kl run-away", .save = true};
  toy.trainer.extra[5].alarm = {.what = "a little high"};
  ::testing::internal::CaptureStderr();
  const LoopResult result = toy.run(temp.path(), options_of(10, 2, 4));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.reason, "complete");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(toy.trainer.saved, ElementsAre(3, 4, 8, 10));
  EXPECT_THAT(log, HasSubstr("after step 3: kl run-away"));
  EXPECT_THAT(log, HasSubstr("after step 5: a little high"));
}

TEST(Loop, AnAlarmDoesNotSaveWhereNothingIsSaved) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.extra[3].alarm = {.what = "kl run-away", .save = true};
  EXPECT_EQ(toy.run(temp.path(), options_of(5, 2, 0)).step, 5);
  EXPECT_TRUE(toy.trainer.saved.empty());
}

TEST(Loop, AnAlarmThatStopsSavesAndEndsTheRunWithItsWords) {
  const TempFolder temp;
  ToyRun toy;
  toy.trainer.extra[3].alarm = {.what = "kl run-away: 12 is above 10", .stop = true};
  const LoopResult result = toy.run(temp.path(), options_of(10, 2, 4));
  EXPECT_EQ(result.reason, "kl run-away: 12 is above 10");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.step, 3);
  EXPECT_THAT(toy.trainer.saved, ElementsAre(3));
  ToyRun again;  // goes on where it was stopped
  EXPECT_EQ(again.run(temp.path(), options_of(10, 2, 4)).reason, "complete");
  EXPECT_EQ(again.trainer.calls.front(), "step");
  EXPECT_EQ(lines_of(temp.path()).size(), 15U);
}

// A run that is wrong is not complete; and a signal would have it started again.
TEST(Loop, AnAlarmThatStopsComesBeforeTheEndAndBeforeSignals) {
  const TempFolder last, signalled;
  ToyRun toy, other;
  toy.trainer.extra[4].alarm = {.what = "wrong", .stop = true};
  const LoopResult result = toy.run(last.path(), options_of(4, 2, 4));
  EXPECT_EQ(result.reason, "wrong");
  EXPECT_EQ(result.exit_code, 1);
  other.trainer.extra[2].alarm = {.what = "wrong", .stop = true};
  other.trainer.raise_at = 2;
  other.trainer.signal = SIGTERM;
  EXPECT_EQ(other.run(signalled.path(), options_of(4, 2, 4)).exit_code, 1);
}

TEST(Loop, TheAlarmOfAValidationCountsAsAStepsDoes) {
  const TempFolder temp, both;
  ToyRun toy, two;
  toy.trainer.validation_alarms[2] = {.what = "rewards fell", .save = true};
  toy.trainer.validation_alarms[6] = {.what = "rewards are gone", .stop = true};
  const LoopResult result = toy.run(temp.path(), options_of(10, 2, 4));
  EXPECT_EQ(result.reason, "rewards are gone");
  EXPECT_EQ(result.step, 6);
  EXPECT_THAT(toy.trainer.saved, ElementsAre(2, 4, 6));
  two.trainer.extra[2].alarm = {.what = "of the step", .stop = true};
  two.trainer.validation_alarms[2] = {.what = "of the validation", .save = true};
  EXPECT_EQ(two.run(both.path(), options_of(10, 2, 4)).reason, "of the step");
}

TEST(Loop, MonitorsHaveTheReferencesNames) {
  const auto monitors = monitors_of({{"train/loss", 1},
                                     {"validation/acc", 2},
                                     {"validation_more/acc", 3},
                                     {"train_rollouts/rewards", 4},
                                     {"val_rollouts/rewards", 5},
                                     {"train_optim/loss", 6},
                                     {"timers/generate", 7}});
  EXPECT_EQ(monitors,
            (std::map<std::string, double>{{"train_loss", 1}, {"val_acc", 2}, {"train_rewards", 4}, {"val_rewards", 5}, {"generate", 7}}));
}

}  // namespace
}  // namespace kedge
