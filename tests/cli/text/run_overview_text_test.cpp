#include "cli/text/run_overview_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunOverview story_of() {
  RunOverview overview;
  overview.title = "kedge reinforce";
  overview.status = "complete";
  overview.step = overview.max_steps = 40;
  overview.model_folder = "/models/" + std::string(90, 'm');
  overview.settings = Json::parse(R"({"model": {"optim": {"lr": 0.001}, "seed": 7}, "trainer": {"precision": "32"}})");
  overview.run.starts =
      Json::parse(R"([{"started": "2026-01-31T12:00:00Z", "command_line": ["kedge", "reinforce"], "device": "cpu", "ranks": 1,
    "kedge": {"version": "1", "commit": "c"}, "torch": "2", "machine": {"cores": 2, "cpu": "x"}, "host": "h", "parent": null}])");
  overview.data_files = {{.path = "/data/prompts.jsonl", .num_lines = 256}, {.path = "/data/gone.jsonl", .state = StoryFile::State::gone}};
  overview.rewards = {"lexicon, file words.txt"};
  NumberRow row{.name = "train_rollouts/rewards", .label = "reward", .wanted = Wanted::high, .series = {.name = "reward"}};
  for (int64_t step = 0; step < 40; ++step) row.series.add(step, static_cast<double>(step));
  overview.numbers.rows = {row};
  overview.monitor = "val_rewards";
  overview.checkpoints = {{.folder = "/run/checkpoints/a", .step = 30, .bytes = 2048, .is_best = true, .number = 8.5},
                          {.folder = "/run/checkpoints/b", .step = 40, .bytes = 2048, .is_last = true}};
  return overview;
}

TEST(RunStoryText, FitsItsWidthAndAScreen) {
  for (const size_t width : {80U, 60U}) {
    std::istringstream lines(story_text(story_of(), "runs/first", {.width = width}, true));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(columns_of(line), width) << line;
    EXPECT_LE(count, 40U);
  }
}

TEST(RunStoryText, SaysWhatANewcomerAsks) {
  const std::string text = story_text(story_of(), "runs/first", {}, false);
  EXPECT_THAT(text, HasSubstr("runs/first: kedge reinforce, 40 of 40 steps, complete\n"));
  EXPECT_THAT(text, HasSubstr("data         /data/prompts.jsonl (256 lines, unchanged)\n"));
  EXPECT_THAT(text, HasSubstr("             /data/gone.jsonl (MISSING)\n"));
  EXPECT_THAT(text, HasSubstr("reward                       1.5      37.5        39      39  "));
  EXPECT_THAT(text, HasSubstr("nothing found in its metrics\n"));
  EXPECT_THAT(text, HasSubstr("checkpoints  step 30 (best, val_rewards 8.5), step 40 (last); 2.0 KiB each\n"));
  EXPECT_THAT(text, HasSubstr("kedge export runs/first OUT --best "));
}

TEST(RunStoryText, AModelThatIsNotOfTheLastStepHasItsOwn) {
  RunOverview overview = story_of();
  overview.has_model = true;
  overview.model_step = 40;
  EXPECT_THAT(story_text(overview, "run", {}, false), HasSubstr("model        model/, a Hugging Face folder\n"));
  overview.model_step = 30;
  EXPECT_THAT(story_text(overview, "run", {}, false), HasSubstr("model        model/, a Hugging Face folder, of step 30\n"));
  EXPECT_EQ(story_json(overview).at("model_step", ""), Json(30));
}

TEST(RunStoryText, HintsAndAlarmsHaveTheirSteps) {
  RunOverview overview = story_of();
  overview.hints = {{17, "KL run-away"}};
  overview.log.first_alarm = Hint{21, "it is bad\nin two lines"};
  overview.log.first_warning = overview.log.first_alarm;
  overview.log.num_warnings = 3;
  const std::string text = story_text(overview, "run", {}, false);
  EXPECT_THAT(text, HasSubstr("  step 17    KL run-away\n"));
  EXPECT_THAT(text, HasSubstr("  log.txt    its own alarm, step 21: it is bad\n"));
  EXPECT_THAT(text, Not(HasSubstr("in two lines")));
  EXPECT_THAT(text, Not(HasSubstr("nothing found")));
  EXPECT_THAT(text, HasSubstr("But see below."));
}

TEST(RunStoryText, AsJson) {
  const Json json = story_json(story_of());
  EXPECT_EQ(json.at("status", "").as_text(""), "complete");
  EXPECT_EQ(json.at("numbers", "").as_array("")[0].at("change", "").as_text(""), "rose");
  EXPECT_EQ(json.at("checkpoints", "").as_array("").size(), 2U);
  EXPECT_EQ(json.at("data_files", "").as_array("")[1].at("state", "").as_text(""), "gone");
  EXPECT_EQ(json.at("reproduce", "").as_text(""), "cd '' && kedge reinforce");
}

}  // namespace
}  // namespace kedge::cli
