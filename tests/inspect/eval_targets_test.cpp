#include "kedge/inspect/eval_targets.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;

// A folder with runs and models, of which nobody reads the weights.
class EvalTargets : public ::testing::Test {
 protected:
  Path run(const std::string& name, const std::string& algorithm, const std::vector<int64_t>& steps) {
    const Path place = folder_ / name;
    make_folder(place);
    write_atomic(place / "config.yaml", "model:\n  restore_from_path: base\n");
    write_atomic(place / "run.json",
                 "[{\"command_line\": [\"kedge\", \"" + algorithm + "\"], \"folder\": \"" + folder_.path().string() + "\"}]");
    CheckpointStore store(place / "checkpoints", {.monitor = "step", .mode = MonitorMode::max, .save_top_k = -1, .filename = "run-{step}"});
    for (const int64_t step : steps) {
      CheckpointMeta meta;
      meta.counters["step"] = step;
      store.save(meta, [](const Path& path) { write_atomic(path / "weights", "0123"); });
    }
    return place;
  }
  Path model(const std::string& name) {
    make_folder(folder_ / name);
    write_atomic(folder_ / name / "config.json", "{}");
    return folder_ / name;
  }
  static std::string names_of(const std::vector<std::string>& given, const StepChoice& choice = {}) {
    std::string text;
    for (const EvalTarget& target : find_targets(given, choice)) text += (text.empty() ? "" : "|") + target.name;
    return text;
  }
  static std::string fault(const std::vector<std::string>& given, const StepChoice& choice = {}) {
    return error_of([&] { return find_targets(given, choice); });
  }

  TempFolder folder_;
};

TEST_F(EvalTargets, ARunIsItsStartAndItsCheckpointsByStep) {
  const Path place = run("a", "reinforce", {10, 5, 20});
  const std::vector<EvalTarget> targets = find_targets({place.string()}, {});
  ASSERT_EQ(targets.size(), 4);
  EXPECT_EQ(targets[0].kind, PolicyKind::start);
  EXPECT_EQ(targets[0].step, 0);
  EXPECT_EQ(targets[1].kind, PolicyKind::checkpoint);
  EXPECT_EQ(targets[1].step, 5);
  EXPECT_TRUE(is_file(targets[1].folder / "weights"));
  EXPECT_EQ(names_of({place.string()}), "0|5|10|20");
}

TEST_F(EvalTargets, StepsCanBeChosen) {
  const std::string place = run("a", "rs", {5, 10, 15, 20});
  EXPECT_EQ(names_of({place}, {.steps = {20, 5}}), "0|5|20");
  EXPECT_EQ(names_of({place}, {.every = 10}), "0|10|20");
  EXPECT_EQ(fault({place}, {.steps = {7}}), place + ": no checkpoint of step 7; there are 5, 10, 15, 20");
}

TEST_F(EvalTargets, ACheckpointFindsItsRun) {
  const Path place = run("a", "ppo", {5, 10});
  const std::vector<EvalTarget> targets = find_targets({(place / "checkpoints" / "run-step=10").string()}, {});
  ASSERT_EQ(targets.size(), 2);
  EXPECT_EQ(targets[0].step, 0);
  EXPECT_EQ(targets[1].step, 10);
  EXPECT_EQ(targets[1].run->algorithm, "ppo");
  // Beside its run it is there once.
  EXPECT_EQ(names_of({place.string(), (place / "checkpoints" / "run-step=10").string()}), "0|5|10");
}

TEST_F(EvalTargets, ADamagedCheckpointIsRefused) {
  model("base");
  for (const char* algorithm : {"ppo", "sft"}) {
    const Path place = run(algorithm, algorithm, {5, 10}), damaged = place / "checkpoints" / "run-step=10";
    write_atomic(damaged / "weights", "0124");
    for (const Path& given : {place, damaged})
      EXPECT_NE(fault({given.string()}).find("run-step=10: weights: its bytes are not those that were saved"), std::string::npos) << given;
    EXPECT_EQ(names_of({place.string()}, {.steps = {5}}), "0|5");
  }
}

TEST_F(EvalTargets, SeveralRunsAreToldApart) {
  const std::string a = run("a", "reinforce", {5}), b = run("b", "rs", {7});
  EXPECT_EQ(names_of({a, b}), "a 0|a 5|b 0|b 7");
  make_folder(folder_ / "more");
  const std::string twin = run("more/a", "rs", {9});
  const auto whole = [](const std::string& path) { return std::filesystem::weakly_canonical(path).string(); };
  EXPECT_EQ(names_of({a, twin}), whole(a) + " 0|" + whole(a) + " 5|" + whole(twin) + " 0|" + whole(twin) + " 9");
}

TEST_F(EvalTargets, ModelFoldersStandByThemselves) {
  const std::string base = model("base"), tuned = model("tuned");
  const std::vector<EvalTarget> targets = find_targets({base, tuned}, {});
  ASSERT_EQ(targets.size(), 2);
  EXPECT_EQ(targets[0].kind, PolicyKind::model);
  EXPECT_EQ(targets[0].run, nullptr);
  EXPECT_EQ(targets[1].name, tuned);
  EXPECT_FALSE(targets[1].step);
}

TEST_F(EvalTargets, TheModelOfARunFindsItToo) {
  const Path place = run("a", "reinforce", {5});
  make_folder(place / "model");
  write_atomic(place / "model" / "config.json", "{}");
  const std::vector<EvalTarget> targets = find_targets({(place / "model").string()}, {});
  ASSERT_EQ(targets.size(), 2);
  EXPECT_EQ(targets[0].kind, PolicyKind::start);
  EXPECT_EQ(targets[1].kind, PolicyKind::model);
  EXPECT_EQ(targets[1].run->algorithm, "reinforce");
  EXPECT_EQ(targets[1].name, "a model");
  const Path inside = place / "checkpoints" / "run-step=5" / "model";
  make_folder(inside);
  write_atomic(inside / "config.json", "{}");
  EXPECT_EQ(names_of({inside.string()}), "a 0|a 5 model");
}

TEST_F(EvalTargets, FineTuningsCheckpointsAreModels) {
  model("base");
  const Path place = run("tuned", "sft", {4});
  const std::vector<EvalTarget> targets = find_targets({place.string()}, {});
  ASSERT_EQ(targets.size(), 2);
  EXPECT_EQ(targets[0].kind, PolicyKind::model);
  EXPECT_EQ(targets[0].folder.filename(), "base");
  EXPECT_EQ(targets[1].folder.filename(), "model");
  EXPECT_EQ(targets[1].step, 4);
}

TEST_F(EvalTargets, AdaptersStandOnTheirBase) {
  const Path base = model("base");
  make_folder(folder_ / "adapter");
  write_atomic(folder_ / "adapter" / "adapter_config.json", R"({"base_model_name_or_path": "base"})");
  EXPECT_TRUE(has_adapters(folder_ / "adapter"));
  EXPECT_EQ(base_of(folder_ / "adapter", folder_.path()), base);
  EXPECT_EQ(base_of(base, folder_.path()), base);
}

TEST_F(EvalTargets, AnythingElseIsRefusedByName) {
  const std::string place = run("a", "reinforce", {}), judge = run("judge", "rm", {5});
  EXPECT_EQ(fault({place}), place + ": has no complete checkpoint yet (exp_manager.checkpoint_callback_params says which are kept)");
  EXPECT_EQ(fault({judge}), judge + ": a run of kedge rm, which trains no policy; there are no answers to evaluate");
  make_folder(folder_ / "empty");
  const std::string empty = (folder_ / "empty").string();
  EXPECT_EQ(fault({empty}), empty + ": neither the folder of a run, nor a checkpoint of one, nor a model folder");
  EXPECT_NE(fault({(folder_ / "none").string()}).find("none"), std::string::npos);
}

TEST_F(EvalTargets, ListsOfNumbers) {
  EXPECT_EQ(parse_whole_numbers("10,20", "--steps"), (std::vector<int64_t>{10, 20}));
  for (const char* text : {"", "1,", "a", "1;2", "-1", "1.5"})
    EXPECT_EQ(error_of([&] { return parse_whole_numbers(text, "--steps"); }),
              std::string("--steps: expected integers separated by commas, found \"") + text + "\"");
}

}  // namespace
}  // namespace kedge
