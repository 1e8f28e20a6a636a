#include "cli/report/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/count_of.h"

namespace kedge::cli {
namespace {

using kedge::testing::count_of;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SvgChart, TextsFromOutsideAreText) {
  EXPECT_EQ(escaped("<script>\"a\" & 'b'"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;");
  EXPECT_EQ(escaped("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(escaped("a\x1b[1m\xff\xc3\xa9"), "a\xef\xbf\xbd[1m\xef\xbf\xbd\xc3\xa9");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\xef\xbf\xbd");
}

TEST(SvgChart, TicksAreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_THAT(nice_ticks(0, 10, 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(0.3, 2.1, 5), ElementsAre(0.5, 1, 1.5, 2));
  EXPECT_THAT(nice_ticks(-3, 3, 4), ElementsAre(-2, 0, 2));
  EXPECT_THAT(nice_ticks(0, 99999, 6), ElementsAre(0, 20000, 40000, 60000, 80000));
  EXPECT_THAT(nice_ticks(5, 5, 6), ElementsAre(5));
  EXPECT_LE(nice_ticks(1e15, 1e15 + 0.25, 6).size(), 6U);  // finer than a double can count
}

TEST(SvgChart, FiguresHaveTheDigitsThatTheStepNeeds) {
  const Figures plain, share{100, " %"};
  EXPECT_EQ(plain.tick(0.5, 0.25), "0.5");
  EXPECT_EQ(plain.tick(2, 1), "2");
  EXPECT_EQ(plain.tick(-0.0, 0.1), "0.0");
  EXPECT_EQ(plain.tick(20000, 10000), "20000");
  EXPECT_EQ(plain.tick(2e-6, 1e-6), "2e-06");
  EXPECT_EQ(share.tick(40, 20), "40 %");
  EXPECT_EQ(share.text(0.525), "52.5 %");
}

// The picture is 560 x 230; lines have x from 52 to 548 and y from 196 (low) to 10 (high).
TEST(SvgChart, AKnownLine) {
  const std::string svg =
      svg_of(LineChart{.title = "Reward", .lines = {{.label = "training", .colour = 2, .x = {0, 1, 2}, .y = {0, 1, 0.5}}}});
  EXPECT_THAT(svg, HasSubstr("aria-label=\"Reward\""));
  EXPECT_THAT(svg, HasSubstr("<g class=\"k2\">\n<path class=\"line\" d=\"M52 196L300 10L548 103\"/>"));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"hover\" cx=\"300\" cy=\"10\" r=\"5\"><title>training, step 1: 1</title></circle>"));
  EXPECT_THAT(svg, HasSubstr(">0.4</text>"));
  EXPECT_THAT(svg, AllOf(HasSubstr(">2</text>"), Not(HasSubstr(">0.5</text>"))));  // steps are whole
  EXPECT_EQ(count_of(svg, "class=\"raw\""), 0U);
}

TEST(SvgChart, ASmoothedLineLeavesTheNumbersFaint) {
  const std::string svg = svg_of(LineChart{.title = "Reward", .lines = {{.label = "a", .x = {0, 1}, .y = {0, 1}, .smooth = {0.25, 0.75}}}});
  EXPECT_THAT(svg, HasSubstr("<path class=\"raw\" d=\"M52 196L548 10\"/>\n<path class=\"line\" d=\"M52 149.5L548 56.5\"/>"));
  EXPECT_THAT(svg, HasSubstr("<title>a, step 1: 0.75 smoothed, 1</title>"));
}

TEST(SvgChart, ValidationHasPoints) {
  const std::string svg = svg_of(LineChart{.title = "Reward", .lines = {{.label = "v", .x = {0, 1}, .y = {0, 1}, .has_points = true}}});
  EXPECT_EQ(count_of(svg, "class=\"dot\""), 2U);
  EXPECT_EQ(count_of(svg, "class=\"points\""), 1U);
}

TEST(SvgChart, NumbersThatAreNotFiniteAreGapsWithAMark) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::string svg = svg_of(LineChart{.title = "Loss", .lines = {{.label = "a", .x = {0, 1, 2, 3, 4}, .y = {0, 1, nan, 1, inf}}}});
  EXPECT_THAT(svg, HasSubstr("d=\"M52 196L176 10M424 10L424 10\""));  // what is alone is a point
  EXPECT_THAT(svg, HasSubstr("<title>a, step 2: not a finite number (NaN)</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>a, step 4: not a finite number (infinite)</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan ")));
}

TEST(SvgChart, OneNumberAndEqualNumbersHaveRoom) {
  const std::string one = svg_of(LineChart{.title = "Loss", .lines = {{.label = "a", .x = {7}, .y = {3}}}});
  EXPECT_THAT(one, HasSubstr("d=\"M300 103L300 103\""));
  const std::string zeros = svg_of(LineChart{.title = "Loss", .lines = {{.label = "a", .x = {0, 1}, .y = {0, 0}}}});
  EXPECT_THAT(zeros, HasSubstr("d=\"M52 103L548 103\""));
}

TEST(SvgChart, AShareHasNoRoomBeyondAllAndNothing) {
  LineChart chart{.title = "ended", .figures = {100, " %"}, .lines = {{.label = "a", .x = {0, 1}, .y = {1, 1}}}};
  EXPECT_THAT(svg_of(chart), HasSubstr(">100 %<"));
  EXPECT_THAT(svg_of(chart), ::testing::Not(HasSubstr(">105 %<")));
  EXPECT_THAT(svg_of(chart), ::testing::Not(HasSubstr(">110 %<")));
  chart.lines[0].y = {0, 0};
  EXPECT_THAT(svg_of(chart), ::testing::Not(HasSubstr(">-")));
}

TEST(SvgChart, NothingToDrawIsSaid) {
  EXPECT_THAT(svg_of(LineChart{.title = "Loss"}), HasSubstr("no finite numbers"));
  EXPECT_THAT(svg_of(LineChart{.title = "Loss", .lines = {{.label = "a", .x = {0}, .y = {std::nan("")}}}}), HasSubstr("no finite numbers"));
  EXPECT_THAT(svg_of(BarChart{.title = "Time"}), HasSubstr("no finite numbers"));
}

TEST(SvgChart, NamesAreEscaped) {
  const std::string svg = svg_of(LineChart{.title = "<b>", .lines = {{.label = "</title><script>", .x = {0}, .y = {1}}}});
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("<b>"))));
  EXPECT_THAT(legend_of({{"<i>", 3, false, true}}), HasSubstr("<span class=\"k3\"><i class=\"dashed\"></i>&lt;i&gt;</span>"));
}

// Two bars of 248 units with a gap of 3 between them; a unit of time is 93 high.
TEST(SvgChart, PartsOfBarsStandOnEachOther) {
  const std::string svg = svg_of(BarChart{
      .title = "Time", .part_names = {"draw", "train"}, .figures = {1, " s"}, .bars = {{"0", {1, 1}}, {"1", {0.5, std::nan("")}}}});
  EXPECT_THAT(svg,
              HasSubstr("<rect class=\"part k0\" x=\"53.5\" y=\"103\" width=\"245\" height=\"93\"><title>0, draw: 1 s</title></rect>"));
  EXPECT_THAT(svg,
              HasSubstr("<rect class=\"part k1\" x=\"53.5\" y=\"10\" width=\"245\" height=\"93\"><title>0, train: 1 s</title></rect>"));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"part k0\" x=\"301.5\" y=\"149.5\" width=\"245\" height=\"46.5\">"));
  EXPECT_EQ(count_of(svg, "<rect"), 3U);
}

}  // namespace
}  // namespace kedge::cli
