#include "kedge/inspect/run_overview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/checkpoint/run_record.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using State = StoryFile::State;

// A run over two data files, with three steps done and no word of how it ended.
class StoryFolder {
 public:
  StoryFolder() {
    make_folder(run());
    folder.file("a.jsonl", "{}\n{}\n{}");
    folder.file("b.jsonl", "{}\n");
    folder.file("run/config.yaml",
                "trainer: {rs: {health: {max_kl: 2.0}}}\n"
                "pretrained_checkpoint: {restore_from_path: start}\n"
                "reward: {sources: {nice: {kind: lexicon, file: words.txt, weight: 0.5}}, watch: {length: {kind: length, weight: 1.0}}}\n"
                "exp_manager: {checkpoint_callback_params: {monitor: val_reward, mode: max}}\n");
    Json start = run_record({.command_line = {"kedge", "rs", "model.x=[1, 2]"},
                             .data_files = {folder / "a.jsonl", folder / "b.jsonl", folder / "a.jsonl"},
                             .max_steps = 9});
    start.set("folder", folder.path().string());
    add_run_record(run(), start);
    for (int step = 0; step < 3; ++step)
      metrics += str("{\"step\": ", step, ", \"time\": 1.5, \"train_rollouts/rewards\": 1.0, \"train/step_time\": 2.0}\n");
    folder.file("run/metrics.jsonl", metrics);
  }
  [[nodiscard]] Path run() const { return folder / "run"; }

  TempFolder folder;
  std::string metrics;
};

TEST(RunOverview, TellsWhatWentIn) {
  const StoryFolder made;
  const RunOverview overview = read_run_story(made.run());
  EXPECT_EQ(overview.title, "kedge rs");
  EXPECT_THAT(overview.rewards, ElementsAre("nice (lexicon), file words.txt, weight 0.5", "watched, not trained on: length"));
  ASSERT_EQ(overview.data_files.size(), 2U);  // each once
  EXPECT_EQ(overview.data_files[0].num_lines, std::optional<int64_t>(3));
  EXPECT_EQ(overview.data_files[0].state, State::same);
  EXPECT_EQ(overview.data_files[1].num_lines, std::optional<int64_t>(1));
  EXPECT_EQ(overview.model_folder, "start");
  EXPECT_FALSE(overview.network.has_value());
  EXPECT_EQ(overview.monitor, "val_reward");
  EXPECT_EQ(command_of(overview), "cd " + made.folder.path().string() + " && kedge rs 'model.x=[1, 2]'");
}

TEST(RunOverview, TheServersOfAPpoRunAreToldApart) {
  const StoryFolder made;
  const auto story_of = [&](const char* combined) {
    write_atomic(made.run() / "config.yaml", str("remote_critic_rm: {combine_rm_and_critic_server: ", combined,
                                                 ", critic: {ip: node1, port: 5556}, reward_model: {ip: node2, port: 5555}}\n",
                                                 "reward: {watch: {length: {kind: length, weight: 1.0}}}\n"));
    return read_run_story(made.run());
  };
  EXPECT_THAT(story_of("false").rewards, ElementsAre("watched, not trained on: length", "the server at node2:5555"));
  EXPECT_EQ(story_of("false").critic, "the server at node1:5556");
  EXPECT_THAT(story_of("true").rewards, ElementsAre("watched, not trained on: length", "the critic's server at node1:5556"));
}

TEST(RunOverview, FilesThatChangedOrWent) {
  const StoryFolder made;
  made.folder.file("a.jsonl", "{}\n[]\n{}");  // of the same size
  std::filesystem::remove(made.folder / "b.jsonl");
  const RunOverview overview = read_run_story(made.run());
  EXPECT_EQ(overview.data_files[0].state, State::changed);
  EXPECT_EQ(overview.data_files[1].state, State::gone);
}

TEST(RunOverview, HowItEnded) {
  const StoryFolder made;
  const auto status = [&] { return read_run_story(made.run()).status; };
  EXPECT_EQ(read_run_story(made.run()).step, 3);
  EXPECT_EQ(read_run_story(made.run()).max_steps, 9);
  EXPECT_THAT(status(), ::testing::HasSubstr("not complete, and not running"));
  {
    const RunLock lock(made.run());
    EXPECT_EQ(status(), "running");
  }
  made.folder.file("run/log.txt", "2026-11-16 02:24:28 error disk full\n");
  EXPECT_EQ(status(), "ended by an error");
  made.folder.file("run/summary.json", R"({"reason": "SIGTERM", "step": 3, "max_steps": 9})");
  EXPECT_EQ(status(), "ended: SIGTERM");
  made.folder.file("run/summary.json", R"({"reason": "SIGTERM", "step": 3, "max_steps": 9, "starts": 1})");
  EXPECT_EQ(status(), "ended: SIGTERM");
  made.folder.file("run/summary.json", R"({"reason": "SIGTERM", "step": 3, "max_steps": 9, "starts": 0})");  // of an earlier start
  EXPECT_EQ(status(), "ended by an error");
  made.folder.file("run/summary.json", R"({"reason": "complete", "step": 3, "max_steps": 3})");  // the newest start is to make 9
  EXPECT_EQ(status(), "ended by an error");
  made.folder.file("run/summary.json", R"({"reason": "complete", "step": 15, "max_steps": 15})");
  EXPECT_EQ(status(), "complete");
  EXPECT_EQ(read_run_story(made.run()).step, 15);
  EXPECT_EQ(read_run_story(made.run()).max_steps, 15);  // not 15 of 9
  made.folder.file("run/log.txt", "");
  made.folder.file("run/summary.json", R"({"reason": "complete", "step": 2, "max_steps": 2})");  // it went on since
  EXPECT_THAT(status(), ::testing::HasSubstr("not complete, and not running"));
}

TEST(RunOverview, AServerThatASignalEndedWasNotKilled) {
  const StoryFolder made;
  RunOnDisk run = open_run(made.run());
  run.algorithm = "serve";
  EXPECT_EQ(end_of(run, 3, false).step, 3);
  EXPECT_THAT(end_of(run, 3, false).status, ::testing::HasSubstr("it was killed"));
  made.folder.file("run/log.txt", "2026-11-16 02:24:28 info SIGINT: finishing running calls\n2026-11-16 02:24:28 info stopped\n");
  EXPECT_EQ(end_of(run, 3, false).status, "ended: stopped by a signal");
}

TEST(RunOverview, SettingsByTheirNames) {
  const Json settings = Json::parse(R"({"a": {"b": 1.5, "c": null, "d": "text"}})");
  EXPECT_EQ(setting_text(settings, "a.b"), "1.5");
  EXPECT_EQ(setting_text(settings, "a.c"), "");
  EXPECT_EQ(setting_text(settings, "a.d"), "text");
  EXPECT_EQ(setting_text(settings, "a.d.e"), "");
  EXPECT_EQ(setting(settings, "b"), nullptr);
}

TEST(RunOverview, WordsForAShell) {
  EXPECT_EQ(quoted("model.optim.lr=1e-4"), "model.optim.lr=1e-4");
  EXPECT_EQ(quoted("a b"), "'a b'");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(quoted(""), "''");
}

}  // namespace
}  // namespace kedge
