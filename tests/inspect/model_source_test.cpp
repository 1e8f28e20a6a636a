#include "kedge/inspect/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::HasSubstr;

// A run with checkpoints of steps 2, 4 and 6, of which that of step 4 is best.
void make_run(const TempFolder& folder) {
  folder.file("config.yaml", "exp_manager: {checkpoint_callback_params: {monitor: val_reward, mode: max}}");
  folder.file("run.json", R"([{"command_line": ["kedge", "rs"], "folder": "/there", "max_steps": 6}])");
  CheckpointStore store(folder / "checkpoints",
                        {.monitor = "val_reward", .mode = MonitorMode::max, .save_top_k = -1, .filename = "run-{step}"});
  for (const auto& [step, reward] : std::vector<std::pair<int64_t, double>>{{2, 1.0}, {4, 3.0}, {6, 2.0}}) {
    CheckpointMeta meta;
    meta.counters["step"] = step;
    meta.metrics["val_reward"] = reward;
    store.save(meta, [](const Path& path) {
      for (const char* part : {"model", "state"}) {
        make_folder(path / part);
        write_atomic(path / part / "weights", "0123");
      }
    });
  }
}

ModelSource source_of(const Path& folder, const ModelWish& wish = {}) { return *find_model_source(folder, wish); }

TEST(ModelSource, OfARunThatIsNotCompleteTheBestCheckpoint) {
  const TempFolder folder;
  make_run(folder);
  const ModelSource best = source_of(folder.path());
  EXPECT_EQ(best.step, std::optional<int64_t>(4));
  EXPECT_EQ(best.what, "the checkpoint of step 4, the best by val_reward");
  EXPECT_EQ(best.started_in, "/there");
  EXPECT_TRUE(is_file(best.folder / "weights"));
  EXPECT_EQ(source_of(folder.path(), {.best = true}).step, std::optional<int64_t>(4));
  EXPECT_EQ(source_of(folder.path(), {.last = true}).what, "the checkpoint of step 6, the newest");
  EXPECT_EQ(source_of(folder.path(), {.step = 2}).what, "the checkpoint of step 2");
}

TEST(ModelSource, OfACompleteRunItsModelUntilItGoesOn) {
  const TempFolder folder;
  make_run(folder);
  make_folder(folder / "model");
  folder.file("summary.json", R"({"reason": "complete", "step": 6})");
  EXPECT_EQ(source_of(folder.path()).folder.filename(), "model");
  EXPECT_EQ(source_of(folder.path()).what, "the final model of the complete run");
  EXPECT_EQ(source_of(folder.path(), {.last = true}).step, std::optional<int64_t>(6));
  EXPECT_EQ(source_of(folder.path()).step, std::optional<int64_t>(6));
  folder.file("summary.json", R"({"reason": "complete", "step": 6, "model_step": 4})");  // with save_best_model=true
  EXPECT_EQ(source_of(folder.path()).step, std::optional<int64_t>(4));
  folder.file("summary.json", R"({"reason": "complete", "step": 5})");  // a checkpoint of step 6 came behind it
  EXPECT_EQ(source_of(folder.path()).what, "the checkpoint of step 4, the best by val_reward");
  folder.file("summary.json", R"({"reason": "the time limit", "step": 6})");  // it went on from step 5, and did not complete
  EXPECT_EQ(source_of(folder.path()).what, "the checkpoint of step 4, the best by val_reward");
}

TEST(ModelSource, WithoutCheckpointsOnlyTheModelOfTheNewestStart) {
  const TempFolder folder;
  make_run(folder);
  std::filesystem::remove_all(folder / "checkpoints");
  make_folder(folder / "model");
  folder.file("summary.json", R"({"reason": "complete", "step": 6})");
  const auto fault = [&](const ModelWish& wish) { return error_of([&] { return find_model_source(folder.path(), wish); }); };
  EXPECT_EQ(source_of(folder.path()).step, std::optional<int64_t>(6));
  EXPECT_THAT(fault({.best = true}), HasSubstr(": no complete checkpoint; without --best the final model is taken"));
  EXPECT_THAT(fault({.last = true}), HasSubstr(": no complete checkpoint; without --last the final model is taken"));
  folder.file("run.json", R"([{"command_line": ["kedge", "rs"], "folder": "/there", "max_steps": 6},
                              {"command_line": ["kedge", "rs"], "folder": "/there", "max_steps": 10}])");
  EXPECT_THAT(fault({}), HasSubstr(": the run has written no model and no complete checkpoint"));
}

TEST(ModelSource, ACheckpointItself) {
  const TempFolder folder;
  make_run(folder);
  const Path checkpoint = folder / "checkpoints/run-step=2";
  EXPECT_TRUE(is_checkpoint(checkpoint));
  EXPECT_FALSE(is_checkpoint(folder.path()));
  EXPECT_EQ(source_of(checkpoint).folder, checkpoint / "model");
  EXPECT_EQ(source_of(checkpoint).started_in, "/there");
  EXPECT_EQ(run_of_checkpoint(checkpoint), std::optional(std::filesystem::weakly_canonical(folder.path())));
  EXPECT_FALSE(find_model_source(checkpoint / "model", {}).has_value());
}

TEST(ModelSource, WhatCannotBeHad) {
  const TempFolder folder;
  make_run(folder);
  const auto fault = [&](const ModelWish& wish) { return error_of([&] { return find_model_source(folder.path(), wish); }); };
  EXPECT_THAT(fault({.step = 3}), HasSubstr("no checkpoint of step 3; there are 2, 4, 6"));
  EXPECT_THAT(fault({.best = true, .last = true}), HasSubstr("give one of them"));
  EXPECT_THAT(error_of([&] { return find_model_source(folder / "checkpoints/run-step=2", {.best = true}); }),
              HasSubstr("is not the folder of a run"));
  write_atomic(folder / "checkpoints/run-step=4/model/weights", "0124");
  EXPECT_THAT(fault({}), HasSubstr("model/weights: its bytes are not those that were saved"));
  EXPECT_EQ(source_of(folder.path(), {.step = 2}).step, std::optional<int64_t>(2));
}

}  // namespace
}  // namespace kedge
