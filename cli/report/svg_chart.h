#pragma once
// Numbers to pictures: charts as SVG text for an HTML page, without a script. Independent of runs, metrics and files.
// Colours come from the page's style: kSvgStyle has the classes used here, and the page gives the variables --c0 to --c7, --ink, --faint,
// --grid, --paper and --bad their values.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::cli {

inline constexpr size_t kNumColours = 8;
extern const std::string_view kSvgStyle;

// Five characters of HTML become their names, and bytes that are not UTF-8 and control characters U+FFFD; line ends and tabs stay.
[[nodiscard]] std::string escaped(std::string_view text);

// Numbers of the form 1, 2 or 5 times a power of ten, between low and high, at most `most` of them and about as many. Both finite, low <=
// high.
[[nodiscard]] std::vector<double> nice_ticks(double low, double high, size_t most);

// How numbers of a chart are written: 0.52 as "52 %" with scale 100 and suffix " %".
struct Figures {
  double scale = 1;
  std::string suffix = {};

  [[nodiscard]] bool is_share() const { return scale == 100; }      // between 0 and 1, shown in percent
  [[nodiscard]] std::string text(double value) const;               // for a tooltip: four digits
  [[nodiscard]] std::string tick(double value, double step) const;  // for an axis: as many digits as its step needs
};

struct SvgLine {
  std::string label;
  size_t colour = 0;
  std::vector<double> x = {}, y = {};  // x rises; where y is not finite the line is broken and the place is marked below
  std::vector<double> smooth = {};     // at the same x: drawn over y, which is faint then; empty: y alone
  bool has_points = false;             // few values: one point each
  bool is_dashed = false;
};

struct LineChart {
  std::string title;
  std::string x_name = "step";
  Figures figures = {};
  std::vector<SvgLine> lines = {};
};
[[nodiscard]] std::string svg_of(const LineChart& chart);

// Bars next to each other, each with the same parts stacked.
struct Bar {
  std::string label;  // below it, and in its tooltip
  std::vector<double> parts = {};
};
struct BarChart {
  std::string title;
  std::vector<std::string> part_names = {};
  Figures figures = {};
  std::vector<Bar> bars = {};
  double highest = 0;  // of the axis, so that several charts can be compared; 0: of these bars
};
[[nodiscard]] std::string svg_of(const BarChart& chart);

// What the lines are, as HTML: a mark of their colour and their name.
struct LegendEntry {
  std::string label;
  size_t colour = 0;
  bool has_points = false, is_dashed = false;
};
[[nodiscard]] std::string legend_of(const std::vector<LegendEntry>& entries);

}  // namespace kedge::cli
