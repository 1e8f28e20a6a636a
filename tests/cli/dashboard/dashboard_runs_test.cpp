#include "cli/dashboard/dashboard_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/train/checkpoint/run_folder.h"

#include "tests/support/expect_error.h"
#include "tests/support/run_toy.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using kedge::testing::RunToy;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const DashboardRuns& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs.all()) names.push_back(run->name);
  return names;
}

const Json& member(const Json& json, std::string_view key) { return json.at(key, "the test"); }

TEST(DashboardRuns, ARunIsFollowedWhileItGoesOn) {
  const TempFolder folder;
  const RunToy toy(folder / "first");
  toy.add_steps(0, 3);
  DashboardRuns runs({toy.folder().string()});
  const DashboardRun* run = runs.find(0);
  ASSERT_NE(run, nullptr);
  Json told = run->summary();
  EXPECT_EQ(member(told, "name"), Json("first"));
  EXPECT_EQ(member(told, "title"), Json("kedge reinforce"));
  EXPECT_EQ(member(told, "step"), Json(3));
  EXPECT_EQ(member(told, "max_steps"), Json(10));
  EXPECT_EQ(member(told, "running"), Json(false));
  EXPECT_THAT(member(told, "status").as_text(""), HasSubstr("not running"));
  EXPECT_EQ(member(told, "seconds"), Json(6.0));
  {
    const RunLock lock(toy.folder());
    toy.add_steps(3, 4);
    runs.update();
    told = run->summary();
    EXPECT_EQ(member(told, "status"), Json("running"));
    EXPECT_EQ(member(told, "step"), Json(4));
    EXPECT_EQ(member(told, "seconds_left"), Json(12.0));  // six steps of two seconds
  }
  write_atomic(toy.folder() / "summary.json", R"({"reason": "complete", "step": 10, "max_steps": 10})");
  runs.update();
  EXPECT_EQ(member(run->summary(), "status"), Json("complete"));
}

TEST(DashboardRuns, TheMainNumbersAreTold) {
  const TempFolder folder;
  const RunToy toy(folder / "first");
  toy.add_steps(0, 20);
  const DashboardRuns runs({toy.folder().string()});
  const Json told = runs.find(0)->summary();
  const Json& tile = member(told, "tiles").as_array("").front();
  EXPECT_EQ(member(tile, "label"), Json("reward"));
  EXPECT_EQ(member(tile, "first"), Json(0.5));
  EXPECT_EQ(member(tile, "last"), Json(18.5));
  EXPECT_EQ(member(tile, "change"), Json("better"));
}

TEST(DashboardRuns, AFolderWithRunsShowsAllOfThemAndThoseThatCome) {
  const TempFolder folder;
  const RunToy first(folder / "a" / "run"), second(folder / "b" / "run"), third(folder / "c");
  make_folder(folder / "d" / "e" / "f");
  DashboardRuns runs({folder.path().string(), third.folder().string()});
  EXPECT_THAT(names_of(runs), ElementsAre("c", "a/run", "b/run"));
  const RunToy fourth(folder / "d" / "e");
  runs.update();
  EXPECT_THAT(names_of(runs), ElementsAre("c", "a/run", "b/run", "e"));
  EXPECT_EQ(runs.find(3)->id(), 3);
  EXPECT_EQ(runs.find(4), nullptr);
  EXPECT_EQ(runs.find(-1), nullptr);
}

TEST(DashboardRuns, WhatIsNoRunIsRefused) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { DashboardRuns{{(folder / "nowhere").string()}}; }), HasSubstr("nowhere: no such folder"));
  EXPECT_THAT(error_of([&] { DashboardRuns{{folder.path().string()}}; }), HasSubstr("neither the folder of a run"));
}

TEST(DashboardRuns, ARunThatCannotBeReadSaysSoAndTheOthersGoOn) {
  const TempFolder folder;
  const RunToy good(folder / "good"), bad(folder / "bad");
  good.add_steps(0, 2);
  write_atomic(bad.folder() / "run.json", "[");
  write_atomic(bad.folder() / "metrics.jsonl", "{\n");
  DashboardRuns runs({folder.path().string()});
  EXPECT_THAT(member(runs.find(0)->summary(), "status").as_text(""), HasSubstr("cannot be read: "));
  const Json notes = runs.find(0)->notes();
  EXPECT_EQ(notes.as_array("").size(), 2U);
  EXPECT_EQ(member(runs.find(1)->summary(), "step"), Json(2));
  write_atomic(bad.folder() / "run.json", R"([{"command_line": ["kedge", "sft"], "folder": "/there"}])");
  runs.update();
  EXPECT_EQ(member(runs.find(0)->summary(), "title"), Json("kedge sft"));
}

TEST(DashboardRuns, NotesTellWhereItMightHaveGoneWrong) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_steps(0, 2);
  AppendFile(toy.folder() / "metrics.jsonl").append("{\"step\": 2, \"time\": 3, \"train_optim/loss\": \"NaN\"}\nbroken\n");
  write_atomic(toy.folder() / "log.txt", "2026-11-16 02:24:28 warning something is odd\n2026-11-16 02:24:29 error the end\n");
  const DashboardRuns runs({toy.folder().string()});
  std::vector<std::string> kinds;
  const Json notes = runs.find(0)->notes();
  for (const Json& note : notes.as_array("")) kinds.push_back(member(note, "kind").as_text(""));
  EXPECT_THAT(kinds, ElementsAre("error", "hint", "warning", "error"));
  EXPECT_EQ(member(runs.find(0)->summary(), "status"), Json("ended by an error"));
}

}  // namespace
}  // namespace kedge::cli
