#include "cli/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ReportRun run_of(const std::string& name) {
  ReportRun run{.name = name};
  RunOverview& overview = run.overview;
  overview.title = "kedge reinforce";
  overview.status = "complete";
  overview.step = overview.max_steps = 40;
  overview.run.folder = "/runs/" + name;
  overview.run.started_in = "/home/me";
  overview.settings = Json::parse(R"({"model": {"optim": {"lr": 0.001}, "seed": 7}, "trainer": {"precision": "32"}})");
  overview.run.starts =
      Json::parse(R"([{"started": "2026-01-31T12:00:00Z", "command_line": ["kedge", "reinforce", "a=<b>"], "device": "cpu", "ranks": 1,
    "kedge": {"version": "1", "commit": "c"}, "torch": "2", "machine": {"cores": 2, "cpu": "x"}, "host": "h", "parent": null}])");
  NumberRow row{.name = "train_rollouts/rewards", .label = "reward", .wanted = Wanted::high, .series = {.name = "train_rollouts/rewards"}};
  for (int64_t step = 0; step < 40; ++step) row.series.add(step, static_cast<double>(step));
  overview.metrics = {row.series};
  overview.numbers.rows = {row};
  overview.monitor = "val_rewards";
  overview.checkpoints = {
      {.folder = overview.run.folder / "checkpoints/a", .step = 30, .bytes = 2048, .is_best = true, .is_last = true, .number = 8.5}};
  run.settings_text = "model: {seed: 7}\nnote: <i>\n";
  return run;
}

TEST(ReportPage, OneRunIsToldAsAWhole) {
  const std::string html =
      report_html({.title = "first", .made = "now", .runs = {run_of("first")}, .settings = {{"model.optim.lr", {"0.001", "1e-06"}}}});
  EXPECT_THAT(html, StartsWith(std::string(kReportMark)));
  EXPECT_THAT(html,
              HasSubstr("<p class=\"verdict good\"><b>kedge reinforce, 40 of 40 steps, complete</b><br>Reward rose from 1.5 to 37.5"));
  EXPECT_THAT(html, HasSubstr("<td>reward</td><td class=\"n\">1.5</td><td class=\"n good\">37.5 \u2191</td><td class=\"n\">39 at 39</td>"));
  EXPECT_THAT(html, HasSubstr("<figcaption>Reward</figcaption>"));
  EXPECT_THAT(html, HasSubstr("<th>this run</th><th>default</th>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"code\">model.optim.lr</td><td class=\"code\">0.001</td><td class=\"code\">1e-06</td>"));
  EXPECT_THAT(html,
              HasSubstr("<td>best, last</td><td class=\"n\">8.5</td><td class=\"n\">2.0 KiB</td><td class=\"code\">checkpoints/a</td>"));
  EXPECT_THAT(html, HasSubstr("cd /home/me &amp;&amp; kedge reinforce &#39;a=&lt;b&gt;&#39;"));
  EXPECT_THAT(html, AllOf(HasSubstr("note: &lt;i&gt;"), Not(HasSubstr("note: <i>"))));
  EXPECT_THAT(html, HasSubstr("nothing found"));
}

TEST(ReportPage, NeedsNothingFromOutside) {
  const std::string html = report_html({.title = "first", .made = "now", .runs = {run_of("first")}});
  for (const char* word : {"<script", "http://", "https://", "src=", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(word))) << word;
}

TEST(ReportPage, RunsStandBesideEachOther) {
  ReportRun second = run_of("second");
  second.overview.numbers.rows[0].label = "reward";
  second.overview.numbers.rows.push_back(
      {.name = "train/loss", .label = "loss", .wanted = Wanted::low, .series = {.name = "train/loss", .steps = {0}, .values = {2}}});
  const std::string html =
      report_html({.title = "both", .made = "now", .runs = {run_of("first"), second}, .settings = {{"a", {"1", std::nullopt}}}});
  EXPECT_THAT(html, HasSubstr("<th colspan=\"3\">first</th><th colspan=\"3\">second</th>"));
  EXPECT_THAT(html, HasSubstr("<td>loss</td><td></td><td></td><td></td><td class=\"n\">2</td>"));  // only one of them has it
  EXPECT_THAT(html, HasSubstr("<td class=\"code\">1</td><td class=\"faint\">not set</td>"));
  EXPECT_THAT(html, HasSubstr("All settings of second"));
}

TEST(ReportPage, WhatWentWrongIsSaid) {
  ReportRun run = run_of("first");
  run.overview.hints = {{17, "KL run-away"}};
  run.overview.log.last_error = "disk <full>";
  run.overview.data_files = {{.path = "/data/a.jsonl", .state = StoryFile::State::gone}};
  const std::string html = report_html({.title = "first", .made = "now", .runs = {run}});
  EXPECT_THAT(html, AllOf(HasSubstr("verdict unsure"), HasSubstr("<li>step 17: KL run-away</li>"), HasSubstr("disk &lt;full&gt;")));
  EXPECT_THAT(html, HasSubstr("<code>/data/a.jsonl</code> no longer exists"));
}

TEST(ReportPage, ARunWithoutNumbersIsAPageToo) {
  ReportRun run = run_of("<empty>");
  run.overview.metrics.clear();
  run.overview.numbers = {};
  run.overview.checkpoints.clear();
  const std::string html = report_html({.title = "<empty>", .made = "now", .runs = {run}});
  EXPECT_THAT(html, AllOf(HasSubstr("No metrics yet"), HasSubstr("None that is complete"), HasSubstr("<title>&lt;empty&gt;</title>")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<svg")), Not(HasSubstr("<empty>"))));
}

TEST(ReportPage, NamesAreAsShortAsTheyCanBe) {
  EXPECT_THAT(short_names({"/a/runs/one", "/a/runs/two"}), ElementsAre("one", "two"));
  EXPECT_THAT(short_names({"/a/one/0", "/a/two/0"}), ElementsAre("one/0", "two/0"));
  EXPECT_THAT(short_names({"/a/one"}), ElementsAre("one"));
  EXPECT_THAT(short_names({"/x/a", "/x/a/a"}), ElementsAre("x/a", "a/a"));
}

}  // namespace
}  // namespace kedge::cli
