#include "kedge/run/run_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/log.h"
#include "kedge/metrics/jsonl.h"

#include "tests/support/expect_error.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"
#include "tests/support/toy_trainer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::read_metrics;
using testing::TempFolder;
using testing::ToyTrainer;

struct Restored {
  std::string restore_from_path = "lm";
  void fields(auto&& field) { field("restore_from_path", restore_from_path, "where it starts"); }
};
struct ToyModelConfig {
  int64_t seed = 1, global_batch_size = 8;
  void fields(auto&& field) {
    field("seed", seed, "of the order");
    field("global_batch_size", global_batch_size, "rows of a step");
  }
};
struct ToyConfig {
  RunConfig exp_manager;
  Restored pretrained_checkpoint;
  ToyModelConfig model;
  void fields(auto&& field) {
    field("exp_manager", exp_manager, "the run");
    field("pretrained_checkpoint", pretrained_checkpoint, "the model");
    field("model", model, "the rest");
  }
};

// A command that trains one number, in a folder of its own.
struct ToyCommand {
  explicit ToyCommand(const TempFolder& temp) : folder(temp / "run") {
    config.exp_manager.explicit_log_dir = folder.string();
    config.exp_manager.metrics.console = false;
    config.exp_manager.metrics.create_tensorboard_logger = false;
    make_folder(temp / "lm");
    temp.file("lm/config.json", "{}");
    temp.file("data.jsonl", "{}\n");
    job.model_folder = temp / "lm";
    job.data_files = {temp / "data.jsonl"};
  }
  ~ToyCommand() { set_log_file(""); }
  ToyCommand(const ToyCommand&) = delete;
  ToyCommand& operator=(const ToyCommand&) = delete;

  int run(int64_t max_steps, const std::optional<Path>& fork = {}, const std::vector<std::string>& arguments = {"model.seed=1"}) {
    RunSession session(job, arguments, fork);
    if (session.is_finished()) return kExitOk;
    resumed_at = session.checkpoint() ? session.checkpoint()->step() : 0;
    return session.run(
        {.trainer = trainer,
         .model = *model,
         .steps = {4, max_steps},
         .intervals = {max_steps, 2, 2, true},
         .model_writer = [] { return [](const Path& to) { make_folder(to), write_atomic(to / "weight", "the last"); }; },
         .add_summary = [](Json& summary, const Metrics& metrics) { summary.set("best_loss", *metrics.find("validation/loss")); }});
  }
  [[nodiscard]] Json summary() const { return Json::parse(read_text(folder / "summary.json")); }

  Path folder;
  ToyConfig config;
  std::unique_ptr<Model> model = testing::tiny_model(testing::kTinyLlama);
  RunJob job{.name = "toy",
             .section = describe(config),
             .run = config.exp_manager,
             .world = Group::single(),
             .device = at::kCPU,
             .model_folder = {},
             .network_print = "network",
             .tokenizer_print = "tokenizer",
             .memory = {},
             .data_files = {}};
  ToyTrainer trainer;
  int64_t resumed_at = -1;
};

TEST(RunSession, LeavesItsPapersAndItsModel) {
  const TempFolder temp;
  ToyCommand command(temp);
  temp.file("lm/tokenizer.json", "{}");
  EXPECT_EQ(command.run(4), 0);
  EXPECT_EQ(command.resumed_at, 0);
  const Json summary = command.summary();
  EXPECT_EQ(summary.at("reason", ""), Json("complete"));
  EXPECT_EQ(summary.at("step", ""), Json(4));
  EXPECT_EQ(summary.at("consumed_samples", ""), Json(32));
  EXPECT_EQ(summary.at("best_loss", ""), Json(-8.125));
  EXPECT_EQ(summary.at("model_step", ""), Json(4));
  EXPECT_EQ(read_text(command.folder / "model" / "weight"), "the last");
  EXPECT_EQ(read_text(command.folder / "config.yaml"), dump_config(command.job.section));
  const Json started = Json::parse(read_text(command.folder / "run.json")).as_array("").at(0);
  EXPECT_THAT(started.dump(), HasSubstr(R"(["kedge", "toy", "model.seed=1"])"));
  EXPECT_THAT(started.dump(), HasSubstr("data.jsonl"));
  EXPECT_THAT(started.dump(), HasSubstr("lm/config.json"));
  EXPECT_THAT(started.dump(), HasSubstr("lm/tokenizer.json"));
  EXPECT_THAT(read_text(command.folder / "log.txt"), HasSubstr("done: step 4 of 4, model in " + (command.folder / "model").string()));
}

// The loss falls: the first checkpoint has the largest.
TEST(RunSession, TheSummaryTellsOfTheBestModelIfThatIsTheOneItLeaves) {
  const TempFolder temp;
  ToyCommand command(temp);
  command.config.exp_manager.checkpoint_callback_params.mode = MonitorMode::max;
  command.config.exp_manager.checkpoint_callback_params.save_best_model = true;
  EXPECT_EQ(command.run(4), 0);
  EXPECT_EQ(read_text(command.folder / "model" / "weight"), "2.500000");
  EXPECT_EQ(command.summary().at("step", ""), Json(4));
  EXPECT_EQ(command.summary().at("model_step", ""), Json(2));
  EXPECT_EQ(command.summary().at("best_loss", ""), Json(-2.5));
}

TEST(RunSession, ASecondStartGoesOnAndACompleteOneAddsNothing) {
  const TempFolder temp, whole;
  ToyCommand first(temp), unbroken(whole);
  EXPECT_EQ(first.run(4), 0);
  set_log_file("");
  ToyCommand second(temp);
  EXPECT_EQ(second.run(6), 0);
  EXPECT_EQ(second.resumed_at, 4);
  EXPECT_EQ(unbroken.run(6), 0);
  EXPECT_EQ(second.summary().at("best_loss", ""), unbroken.summary().at("best_loss", ""));
  EXPECT_EQ(read_metrics(second.folder / "metrics.jsonl").size(), read_metrics(unbroken.folder / "metrics.jsonl").size());
  const std::string told = read_text(second.folder / "summary.json");
  ToyCommand third(temp);
  EXPECT_EQ(third.run(6), 0);
  EXPECT_TRUE(third.trainer.calls.empty());
  EXPECT_EQ(read_text(third.folder / "summary.json"), told);
  EXPECT_THAT(read_text(third.folder / "log.txt"),
              HasSubstr("the run is complete; a larger trainer.toy.max_epochs or max_steps continues it"));
}

TEST(RunSession, AnAlarmThatStopsIsTheReason) {
  const TempFolder temp;
  ToyCommand command(temp);
  command.trainer.extra[3].alarm = {.what = "kl run-away: 12", .stop = true};
  EXPECT_EQ(command.run(6), 1);
  EXPECT_EQ(command.summary().at("reason", ""), Json("kl run-away: 12"));
  EXPECT_EQ(command.summary().at("step", ""), Json(3));
  EXPECT_FALSE(is_folder(command.folder / "model"));
  EXPECT_EQ(command.summary().find("model_step"), nullptr);
  EXPECT_THAT(read_text(command.folder / "log.txt"), HasSubstr("stopped (kl run-away: 12): step 3 of 6"));
  EXPECT_EQ(read_checkpoint(RunSession(command.job, {}, {}).checkpoint()->folder).step(), 3);
}

// As while weights are loaded.
TEST(RunSession, ASignalBeforeTheFirstStepIsRemembered) {
  const TempFolder temp;
  ToyCommand command(temp);
  RunSession session(command.job, {}, {});
  ::raise(SIGTERM);
  EXPECT_EQ(session.run({command.trainer, *command.model, {4, 6}, {6, 2, 2, true}, {}}), 143);
  EXPECT_THAT(command.trainer.calls, ElementsAre("step"));
  EXPECT_EQ(command.summary().at("reason", ""), Json("SIGTERM"));
}

TEST(RunSession, AWaitThatASignalEndedSaysWhatStands) {
  const TempFolder temp, other;
  ToyCommand early(other), late(temp);
  early.trainer.interrupt_at = 1;
  const std::string came = "SIGTERM received while the server was unavailable; this step is discarded, ";
  EXPECT_EQ(error_of<Interrupted>([&] { return early.run(6); }), came + "and there is no checkpoint yet");
  late.trainer.interrupt_at = 4;
  EXPECT_EQ(error_of<Interrupted>([&] { return late.run(6); }), came + "the last checkpoint, of step 2, is kept");
  EXPECT_FALSE(is_file(late.folder / "summary.json"));
  const std::string metrics = read_text(late.folder / "metrics.jsonl");
  late.trainer.interrupt_load = true;
  EXPECT_EQ(error_of<Interrupted>([&] { return late.run(6); }), came + "the last checkpoint, of step 2, is kept");
  EXPECT_EQ(read_text(late.folder / "metrics.jsonl"), metrics) << "they are cut back when all is loaded";
  ToyCommand again(temp), whole(other);
  EXPECT_EQ(again.run(6), 0);
  EXPECT_EQ(again.resumed_at, 2);
  EXPECT_EQ(whole.run(6), 0);
  EXPECT_EQ(again.summary().at("best_loss", ""), whole.summary().at("best_loss", ""));
  EXPECT_EQ(read_metrics(again.folder / "metrics.jsonl").size(), read_metrics(whole.folder / "metrics.jsonl").size());
}

TEST(RunSession, WhereNoCheckpointsAreWantedNoneAreSaved) {
  const TempFolder temp;
  ToyCommand command(temp);
  command.config.exp_manager.create_checkpoint_callback = false;
  command.trainer.extra[1].alarm = {.what = "high", .save = true};
  EXPECT_EQ(command.run(2), 0);
  EXPECT_TRUE(command.trainer.saved.empty());
  EXPECT_TRUE(is_folder(command.folder / "model"));
}

// It could only begin again.
TEST(RunSession, AFinishedRunWithoutCheckpointsIsNeverReplaced) {
  const TempFolder temp, other;
  const auto start = [&](auto&& change, const std::optional<Path>& fork = {}) {
    ToyCommand command(temp);
    command.config.exp_manager.create_checkpoint_callback = false;
    change(command);
    EXPECT_EQ(command.run(2, fork), 0);
    return command.trainer.calls.size();
  };
  const auto same = [](ToyCommand&) {};
  EXPECT_GT(start(same), 0U);
  const Path run = temp / "run";
  const std::string records = read_text(run / "run.json"), numbers = read_text(run / "metrics.jsonl");
  EXPECT_EQ(start(same), 0U);
  EXPECT_THAT(read_text(run / "log.txt"), HasSubstr("is complete, and has no checkpoint to continue from; to start from scratch, move"));
  const char* refusal = "holds the model of a finished run, which this start would replace, and no checkpoint to continue from";
  EXPECT_THAT(error_of([&] { start([](ToyCommand& command) { command.config.model.seed = 7; }); }), HasSubstr(refusal));
  ToyCommand parent(other);
  EXPECT_EQ(parent.run(2), 0);
  const Path checkpoint = RunSession(parent.job, {}, {}).checkpoint()->folder;
  EXPECT_THAT(error_of([&] { start(same, checkpoint); }), HasSubstr(refusal));
  EXPECT_EQ(read_text(run / "run.json"), records);
  EXPECT_EQ(read_text(run / "metrics.jsonl"), numbers);
  std::filesystem::remove_all(run / "model");
  EXPECT_GT(start(same), 0U);
}

TEST(RunSession, AForkBeginsInAFolderOfItsOwn) {
  const TempFolder temp, other;
  ToyCommand parent(temp), child(other);
  EXPECT_EQ(parent.run(2), 0);
  const Path checkpoint = RunSession(parent.job, {}, {}).checkpoint()->folder;
  EXPECT_EQ(child.run(4, checkpoint), 0);
  EXPECT_EQ(child.resumed_at, 2);
  EXPECT_EQ(child.summary().at("best_loss", ""), Json(-8.125));
  EXPECT_EQ(read_metrics(child.folder / "metrics.jsonl").front().step, 2);
  EXPECT_THAT(read_text(child.folder / "run.json"), HasSubstr(checkpoint.string()));
}

// As a script does that is submitted again.
TEST(RunSession, ForkedFromTheSameCheckpointAgainItGoesOn) {
  const TempFolder temp, other;
  ToyCommand parent(temp), child(other);
  EXPECT_EQ(parent.run(4), 0);
  const std::vector<Checkpoint> saved = list_checkpoints(parent.folder / "checkpoints");
  const Path early = saved.front().folder, late = saved.back().folder;
  ASSERT_NE(early, late);
  EXPECT_EQ(child.run(4, early), 0);
  EXPECT_THAT(error_of([&] { return child.run(6, late); }),
              HasSubstr("already holds checkpoints; a fork needs a new folder. Without --fork the run resumes"));
  for (const int64_t steps : {6, 8}) {
    ToyCommand again(other);
    EXPECT_EQ(again.run(steps, early / ""), 0);
    EXPECT_EQ(again.resumed_at, steps - 2);
  }
  EXPECT_EQ(read_metrics(child.folder / "metrics.jsonl").front().step, 2);
  std::filesystem::remove_all(early);  // the run has what it needs
  EXPECT_EQ(ToyCommand(other).run(10, early), 0);
  // Started again without it, the checkpoints are of another origin.
  for (const char* part : {"checkpoints", "model"}) std::filesystem::remove_all(child.folder / part);
  EXPECT_EQ(ToyCommand(other).run(2), 0);
  EXPECT_THAT(error_of([&] { return ToyCommand(other).run(4, early); }), HasSubstr("a fork needs a new folder"));
}

// Those of an earlier attempt in its folder.
TEST(RunSession, AForkHasNoRecordsOfStepsBeforeIt) {
  const TempFolder temp, other;
  ToyCommand parent(temp), child(other);
  EXPECT_EQ(parent.run(2), 0);
  make_folder(child.folder / "rollouts");
  for (const char* name : {"step-0.jsonl", "step-1.jsonl", "step-2.jsonl"}) write_atomic(child.folder / "rollouts" / name, "{}");
  EXPECT_EQ(child.run(4, RunSession(parent.job, {}, {}).checkpoint()->folder), 0);
  EXPECT_FALSE(is_file(child.folder / "rollouts/step-0.jsonl"));
  EXPECT_FALSE(is_file(child.folder / "rollouts/step-1.jsonl"));
  EXPECT_TRUE(is_file(child.folder / "rollouts/step-2.jsonl"));  // it may have been killed before its first save
}

TEST(RunSession, OtherSettingsAreAcceptedOrRefused) {
  const TempFolder temp;
  ToyCommand first(temp);
  EXPECT_EQ(first.run(2), 0);
  const auto refusal = [&](auto&& change) {
    ToyCommand command(temp);
    change(command);
    return error_of([&] { return command.run(4); });
  };
  EXPECT_THAT(refusal([](ToyCommand& command) { command.config.model.seed = 7; }), HasSubstr("model.seed: 1 -> 7"));
  EXPECT_THAT(refusal([](ToyCommand& command) { command.job.network_print = "another"; }),
              HasSubstr("the checkpoint holds another network"));
  EXPECT_THAT(refusal([](ToyCommand& command) { command.job.tokenizer_print = "another"; }), HasSubstr("its ids mean something else"));
  ToyCommand free(temp);
  free.config.pretrained_checkpoint.restore_from_path = "another";
  free.config.model.global_batch_size = 4;
  EXPECT_EQ(free.run(6), 0);
  EXPECT_THAT(read_text(free.folder / "log.txt"), HasSubstr("global_batch_size: 8 -> 4 (continues at the row where it stopped)"));
}

// SFT that is gone on with replaces its model folder, which may be what others began with.
TEST(RunSession, TheReferenceAndABaseAreComparedByTheirContent) {
  const TempFolder temp;
  ToyCommand first(temp);
  EXPECT_EQ(first.run(2), 0);
  const auto go_on = [&](const char* kept, const std::string& config) {
    ToyCommand command(temp);
    temp.file("lm/config.json", config);
    command.job.kept_start = kept;
    return command.run(2);
  };
  for (const char* kept : {kReference, kBase}) {
    const std::string refusal = error_of([&] { return go_on(kept, "{\"other\": 1}"); });
    EXPECT_THAT(refusal, HasSubstr(str(": cannot resume: ", kept, " would be a different one. The weights in ", (temp / "lm").string())));
    EXPECT_THAT(refusal, HasSubstr("Restore them, or start a new run in another exp_manager.explicit_log_dir"));
    EXPECT_EQ(go_on(kept, "{}"), 0);
  }
  EXPECT_EQ(go_on("", "{\"other\": 1}"), 0) << "the checkpoint holds all that counts";
  ToyCommand moved(temp);  // the same weights in another folder are the same
  temp.file("lm/config.json", "{}");
  std::filesystem::rename(temp / "lm", temp / "moved");
  moved.job.model_folder = temp / "moved";
  moved.job.kept_start = kReference;
  moved.config.pretrained_checkpoint.restore_from_path = "moved";
  EXPECT_EQ(moved.run(4), 0);
}

// As it was before checkpoints knew what the run began with.
TEST(RunSession, ACheckpointOfOldIsGoneOnWith) {
  const TempFolder temp;
  ToyCommand first(temp);
  EXPECT_EQ(first.run(2), 0);
  set_log_file("");
  for (const auto& entry : std::filesystem::directory_iterator(first.folder / "checkpoints")) {
    Json meta = Json::parse(read_text(entry.path() / "meta.json"));
    const auto without = [](const Json& json, const std::string& key) {
      Json::Object members = json.as_object("");
      std::erase_if(members, [&](const Json::Member& member) { return member.first == key; });
      return Json(std::move(members));
    };
    meta = without(meta, "hash");
    meta.set("record", without(meta.at("record", ""), "start"));
    write_atomic(entry.path() / "meta.json", meta.dump());
  }
  ToyCommand other(temp), again(temp);
  other.job.kept_start = again.job.kept_start = kReference;
  other.config.pretrained_checkpoint.restore_from_path = "another";
  EXPECT_THAT(error_of([&] { return other.run(4); }), HasSubstr("(the reference policy would be a different one)"));
  EXPECT_EQ(again.run(4), 0);
  EXPECT_EQ(again.resumed_at, 2);
}

TEST(RunSession, ACheckpointOfAnotherRunIsGoneOnFromWithNumbersOfItsOwn) {
  const TempFolder temp, other;
  ToyCommand parent(temp), child(other);
  EXPECT_EQ(parent.run(2), 0);
  child.config.exp_manager.resume_from_checkpoint = RunSession(parent.job, {}, {}).checkpoint()->folder.string();
  make_folder(child.folder);
  write_atomic(child.folder / "metrics.jsonl", "{\"step\": 0}\n");
  EXPECT_EQ(child.run(4), 0);
  EXPECT_EQ(child.resumed_at, 2);
  EXPECT_EQ(child.summary().at("best_loss", ""), Json(-8.125));
  EXPECT_EQ(read_metrics(child.folder / "metrics.jsonl").front().step, 2);
  EXPECT_EQ(read_text(child.folder / "metrics.jsonl.before-1"), "{\"step\": 0}\n");
  ToyCommand again(other);  // from its own, now that it has one
  again.config.exp_manager.resume_from_checkpoint = child.config.exp_manager.resume_from_checkpoint;
  EXPECT_EQ(again.run(6), 0);
  EXPECT_EQ(again.resumed_at, 4);
  EXPECT_EQ(read_metrics(child.folder / "metrics.jsonl").front().step, 2);
}

TEST(RunSession, ItsNumbersAndItsTemporaryFilesAreNoReasonNotToGoOn) {
  const TempFolder temp;
  ToyCommand first(temp), second(temp);
  EXPECT_EQ(first.run(2), 0);
  std::filesystem::remove(first.folder / "metrics.jsonl");
  write_atomic(first.folder / "samples.jsonl", "x\n");
  write_atomic(first.folder / ".config.yaml.1.0.tmp", "half");
  EXPECT_EQ(second.run(4), 0);
  EXPECT_EQ(second.resumed_at, 2);
  EXPECT_EQ(read_metrics(first.folder / "metrics.jsonl").front().step, 2);
  EXPECT_FALSE(is_file(first.folder / ".config.yaml.1.0.tmp"));
}

// Damaged in place, the best and the last are one.
TEST(RunSession, WithDamagedCheckpointsAloneNothingIsErased) {
  const TempFolder temp;
  ToyCommand first(temp), second(temp);
  EXPECT_EQ(first.run(2), 0);
  const std::string numbers = read_text(first.folder / "metrics.jsonl");
  for (const auto& entry : std::filesystem::directory_iterator(first.folder / "checkpoints"))
    std::filesystem::resize_file(entry.path() / "state" / "state.json", 3);
  EXPECT_THAT(error_of([&] { return second.run(4); }), HasSubstr(": none of its checkpoints can be used:"));
  EXPECT_EQ(read_text(first.folder / "metrics.jsonl"), numbers);
  EXPECT_THAT(error_of([&] { return second.run(4, temp / "elsewhere"); }), HasSubstr("already holds checkpoints"));
  for (const char* moved : {"checkpoints", "model"}) std::filesystem::remove_all(first.folder / moved);
  EXPECT_EQ(second.run(4), 0);
  EXPECT_EQ(read_text(first.folder / "metrics.jsonl.before-1"), numbers);
}

TEST(RunSession, WhatDoesNotFitIsToldBeforeThereIsAFolder) {
  const TempFolder temp;
  ToyCommand command(temp);
  command.job.memory.needed = int64_t{3} << 30U;
  command.job.memory.free = int64_t{1} << 30U;
  command.job.memory.fits = false;
  EXPECT_EQ(error_of([&] { return command.run(2); }),
            "the run needs 3.0 GiB of memory, and 1.0 GiB are free; no setting would make it fit");
  command.job.memory.remedies = {"micro_batch_size=1"};
  EXPECT_THAT(error_of([&] { return command.run(2); }), HasSubstr(". What would fit:\n  micro_batch_size=1"));
  EXPECT_FALSE(is_folder(command.folder));
}

TEST(RunSession, PrintsTellNetworksApart) {
  const ModelConfig llama = testing::tiny_config(testing::kTinyLlama);
  EXPECT_EQ(shape_fingerprint(llama, {}), shape_fingerprint(llama, {}));
  EXPECT_NE(shape_fingerprint(llama, {}), shape_fingerprint(testing::tiny_config(testing::kTinyQwen3), {}));
  EXPECT_NE(shape_fingerprint(llama, {}), shape_fingerprint(llama, {HeadKind::score, 1, false}));
}

}  // namespace
}  // namespace kedge
