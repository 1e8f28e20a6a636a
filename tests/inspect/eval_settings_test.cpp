#include "kedge/inspect/eval_settings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;
using kedge::testing::error_of;
using kedge::testing::TempFolder;

TEST(EvalSettings, TheCurrentFolderComesBack) {
  const TempFolder folder;
  const Path before = fs::current_path();
  {
    const InFolder in_folder(folder.path());
    EXPECT_TRUE(fs::equivalent(fs::current_path(), folder.path()));
  }
  EXPECT_EQ(fs::current_path(), before);
}

TEST(EvalSettings, ARunsRelativePathsBeginWhereItWasStarted) {
  const TempFolder folder;
  fs::create_directories(folder / "home/base");
  fs::create_directories(folder / "run");
  folder.file("home/base/config.json", "{}");
  folder.file("run/config.yaml",
              "pretrained_checkpoint: {restore_from_path: base}\n"
              "model: {seed: 7, rs: {num_val_samples: 5}, peft: {restore_from_path: adapter}}\n"
              "reward: {sources: {brief: {kind: length, target: 9}}}\n");
  RunOnDisk run;
  run.folder = folder / "run";
  run.algorithm = "rs";
  run.config = folder / "run/config.yaml";
  run.started_in = folder / "home";
  const PolicySettings settings = settings_of_run(run, {"model.seed=8"});
  EXPECT_TRUE(settings.start.is_absolute());
  EXPECT_TRUE(fs::equivalent(settings.start, folder / "home/base"));
  EXPECT_TRUE(fs::equivalent(Path(*settings.online.model.peft.restore_from_path).parent_path(), folder / "home"));
  EXPECT_EQ(settings.online.name, "rs");
  EXPECT_EQ(settings.online.model.seed, 8);
  EXPECT_EQ(settings.online.rollouts.num_val_samples, 5);
  EXPECT_EQ(settings.online.reward.sources.at("brief").target, 9);
  EXPECT_EQ(settings.home, folder / "home");
  EXPECT_EQ(settings.online.rollouts.logprob_temperature, LogprobTemperature::one) << "the run is from before this key";
}

TEST(EvalSettings, AModelHasTheTrainersDefaults) {
  const TempFolder folder;
  fs::create_directories(folder / "a model, 'odd'");
  folder.file("a model, 'odd'/config.json", "{}");
  const PolicySettings settings = settings_of_model(folder / "a model, 'odd'", {"model.data.add_bos=true"});
  EXPECT_TRUE(fs::equivalent(settings.start, folder / "a model, 'odd'"));
  EXPECT_TRUE(settings.online.model.data.add_bos);
  EXPECT_EQ(settings.online.rollouts.sampling_params.temperature, 1);
}

TEST(EvalSettings, RewardsComeFromAFileAndOverrides) {
  const TempFolder folder;
  const Path file = folder.file("reward.yaml", "trainer: {devices: 8}\nreward: {sources: {brief: {kind: length, target: 9}}, scale: 2}\n");
  const RewardConfig reward = load_rewards(file, {"reward.scale=3"});
  EXPECT_EQ(reward.sources.size(), 1U);
  EXPECT_EQ(reward.scale, 3);
  EXPECT_EQ(load_rewards(std::nullopt, {"remote_rm.port=77"}).sources.at("remote_rm").url, "http://localhost:77");
  const Path empty = folder.file("empty.yaml", "trainer: {devices: 8}\n");
  EXPECT_EQ(error_of([&] { return load_rewards(empty, {}); }),
            empty.string() +
                ": no reward is configured; expected reward.sources.NAME.kind and what that kind needs, or remote_rm (docs/rewards.md)");
  EXPECT_TRUE(is_about_rewards("reward.sources.x.kind=length"));
  EXPECT_TRUE(is_about_rewards("++remote_rm.port=5"));
  EXPECT_FALSE(is_about_rewards("model.seed=5"));
}

TEST(EvalSettings, ACriticsRewardsCannotBeAsked) {
  RewardConfig reward;
  reward.sources["brief"].kind = RewardKind::length;
  EXPECT_NO_THROW(check_answerable(reward));
  reward.sources["combined"].kind = RewardKind::critic;
  EXPECT_NE(error_of([&] { check_answerable(reward); }).find("\"combined\" came from its critic's server"), std::string::npos);
}

TEST(EvalSettings, AServerIsWaitedForAMinuteUnlessItIsSaid) {
  RewardConfig reward;
  reward.sources["judge"] = {.kind = RewardKind::server, .url = "http://127.0.0.1:5555"};
  reward.sources["slow"] = {.kind = RewardKind::server, .url = "http://127.0.0.1:5556", .wait_limit = 900};
  reward.watch["words"] = {.kind = RewardKind::lexicon};
  limit_waiting(reward);
  EXPECT_EQ(reward.sources["judge"].wait_limit, 60);
  EXPECT_EQ(reward.sources["slow"].wait_limit, 900);
  EXPECT_FALSE(reward.watch["words"].wait_limit);
}

TEST(EvalSettings, OnlyThePromptsThatAreAskedMustBeThere) {
  PolicySettings settings;
  DataConfig& data = settings.online.model.data;
  EXPECT_EQ(error_of([&] { choose_prompts(settings, std::nullopt, "base"); }),
            "base: no prompts are configured; give --prompts FILE, lines with \"text\" or \"prompt\" (docs/data.md)");
  data.data_prefix = Json::parse(R"({"train": ["gone"], "validation": ["there"], "test": ["gone"]})");
  choose_prompts(settings, std::nullopt, "run");
  EXPECT_EQ(data.data_prefix, Json::parse(R"({"train": ["there"], "validation": ["there"], "test": ["there"]})"));
  data.data_prefix = Json::parse(R"(["all"])");
  data.splits_string = "98,1,1";
  choose_prompts(settings, std::nullopt, "run");
  EXPECT_EQ(data.data_prefix, Json::parse(R"(["all"])"));
  choose_prompts(settings, Path("mine"), "run");
  EXPECT_EQ(data.data_prefix, Json::parse(R"({"train": ["mine"], "validation": ["mine"], "test": ["mine"]})"));
  EXPECT_FALSE(data.splits_string);
}

}  // namespace
}  // namespace kedge
