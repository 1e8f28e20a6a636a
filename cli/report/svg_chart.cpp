#include "cli/report/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/metrics/progress.h"

namespace kedge::cli {

const std::string_view kSvgStyle = R"(
svg.chart { display: block; width: 100%; height: auto; overflow: visible; font: 11px system-ui, sans-serif; }
svg.chart text { fill: var(--faint); }
/* The picture shrinks with the screen; its texts stay readable, and every other label of steps makes room for them. */
@media (max-width: 640px) { svg.chart { font-size: 18px; } svg.chart .between { display: none; } }
svg.chart .grid { stroke: var(--grid); stroke-width: 1; }
svg.chart .axis { stroke: var(--faint); stroke-width: 1; }
svg.chart .line, svg.chart .raw, svg.chart .points { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
svg.chart .raw { stroke-width: 1; opacity: .3; }
svg.chart .dashed { stroke-dasharray: 5 4; }
svg.chart .points { stroke-width: 1; stroke-dasharray: 2 3; }
svg.chart .dot { fill: var(--paper); stroke: var(--c); stroke-width: 1.8; }
svg.chart .hover { fill: var(--c); fill-opacity: 0; }
svg.chart .hover:hover, svg.chart .dot:hover { fill: var(--c); fill-opacity: 1; }
svg.chart .part { fill: var(--c); stroke: var(--paper); stroke-width: .5; }
svg.chart .part:hover { opacity: .75; }
svg.chart .bad { stroke: var(--bad); stroke-width: 1.6; }
.legend { display: flex; flex-wrap: wrap; gap: .15em 1.1em; margin: .1em 0 .4em; font-size: .8em; color: var(--faint); }
.legend span { display: inline-flex; align-items: center; gap: .4em; }
.legend i { width: 1.3em; height: 0; border-top: 3px solid var(--c); }
.legend i.dashed { border-top-style: dashed; border-top-width: 2px; }
.legend i.dotted { width: .55em; height: .55em; border: 2px solid var(--c); border-radius: 50%; }
.k0 { --c: var(--c0); } .k1 { --c: var(--c1); } .k2 { --c: var(--c2); } .k3 { --c: var(--c3); }
.k4 { --c: var(--c4); } .k5 { --c: var(--c5); } .k6 { --c: var(--c6); } .k7 { --c: var(--c7); }
)";

namespace {

constexpr double kWidth = 560, kHeight = 230;
constexpr double kLeft = 52, kRight = 12, kTop = 10, kBottom = 34;
constexpr size_t kMostYTicks = 6, kMostXTicks = 8;
constexpr size_t kMostHovers = 80, kMostDots = 200, kMostBad = 40;

// A place in the picture: a tenth of a unit is less than can be seen.
std::string at(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  std::string shown(text.data());
  if (shown.ends_with(".0")) shown.resize(shown.size() - 2);
  return shown == "-0" ? "0" : shown;
}

struct Range {
  double low = INFINITY, high = -INFINITY;

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return low > high; }
  // Numbers that are all the same get room on both sides.
  void widen() {
    if (low < high) return;
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= room;
    high += room;
  }
  // Room ends at bounds that the numbers themselves keep to.
  void keep_within(const Range& numbers, double lowest, double highest) {
    if (numbers.low >= lowest) low = std::max(low, lowest);
    if (numbers.high <= highest) high = std::min(high, highest);
  }
};

// From numbers to places.
struct Scale {
  Range x, y;

  [[nodiscard]] double place_x(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
  [[nodiscard]] double place_y(double value) const {
    return kHeight - kBottom - (value - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  }
};

std::string colour_class(size_t colour) { return str("k", colour % kNumColours); }

std::string opening(const std::string& title) {
  return str("<svg class=\"chart\" viewBox=\"0 0 ", at(kWidth), " ", at(kHeight), "\" role=\"img\" aria-label=\"", escaped(title), "\">\n");
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, bool is_between = false) {
  return str("<text ", is_between ? "class=\"between\" " : "", "x=\"", at(x), "\" y=\"", at(y), "\" text-anchor=\"", anchor, "\">",
             escaped(text), "</text>\n");
}

std::string straight(std::string_view kind, double x1, double y1, double x2, double y2) {
  return str("<line class=\"", kind, "\" x1=\"", at(x1), "\" y1=\"", at(y1), "\" x2=\"", at(x2), "\" y2=\"", at(y2), "\"/>\n");
}

std::string nothing_to_draw(const std::string& title) {
  return opening(title) + text_at(kWidth / 2, kHeight / 2, "middle", "no finite numbers") + "</svg>\n";
}

double step_of(const std::vector<double>& ticks) { return ticks.size() < 2 ? 0 : ticks[1] - ticks[0]; }

std::string y_axis(const Scale& scale, const Figures& figures) {
  std::string text;
  const Range scaled{scale.y.low * figures.scale, scale.y.high * figures.scale};
  const std::vector<double> ticks = nice_ticks(scaled.low, scaled.high, kMostYTicks);
  for (const double tick : ticks) {
    const double y = scale.place_y(tick / figures.scale);
    text += straight("grid", kLeft, y, kWidth - kRight, y);
    text += text_at(kLeft - 6, y + 4, "end", figures.tick(tick, step_of(ticks)));
  }
  return text;
}

std::string x_axis(const Scale& scale, const std::string& name) {
  const double base = kHeight - kBottom;
  std::string text = straight("axis", kLeft, base, kWidth - kRight, base);
  const Figures plain;
  std::vector<double> ticks = nice_ticks(scale.x.low, scale.x.high, kMostXTicks);
  std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });  // steps are whole
  for (size_t i = 0; i < ticks.size(); ++i) {
    text += straight("axis", scale.place_x(ticks[i]), base, scale.place_x(ticks[i]), base + 4);
    text += text_at(scale.place_x(ticks[i]), base + 16, "middle", plain.tick(ticks[i], step_of(ticks)), i % 2 == 1);
  }
  return text + text_at(kWidth - kRight, kHeight - 3, "end", name);
}

// A path over the finite numbers, restarted after each gap; a single number between gaps is a stroke of length 0, which its round ends
// make a point.
std::string path_of(const std::vector<double>& x, const std::vector<double>& y, const Scale& scale) {
  std::string path;
  bool is_open = false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(y[i])) {
      is_open = false;
      continue;
    }
    const std::string place = at(scale.place_x(x[i])) + " " + at(scale.place_y(y[i]));
    path += (is_open ? "L" : "M") + place;
    const bool is_alone = !is_open && (i + 1 == x.size() || !std::isfinite(y[i + 1]));
    if (is_alone) path += "L" + place;
    is_open = true;
  }
  return path;
}

std::string stroke(const SvgLine& line, std::string_view kind, const std::vector<double>& y, const Scale& scale) {
  return str("<path class=\"", kind, line.is_dashed ? " dashed" : "", "\" d=\"", path_of(line.x, y, scale), "\"/>\n");
}

// Places with a text for whoever points at them.
std::string tooltips(const SvgLine& line, const LineChart& chart, const Scale& scale) {
  const std::vector<double>& y = line.smooth.empty() ? line.y : line.smooth;
  const size_t most = line.has_points ? kMostDots : kMostHovers;
  const size_t each = std::max<size_t>(1, (y.size() + most - 1) / most);
  std::string text;
  for (size_t i = 0; i < y.size(); ++i) {
    if (i % each != 0 && i + 1 != y.size()) continue;
    if (!std::isfinite(y[i])) continue;
    std::string told = str(line.label, line.label.empty() ? "" : ", ", chart.x_name, " ", format_number(line.x[i]), ": ");
    told += chart.figures.text(y[i]);
    if (!line.smooth.empty() && std::isfinite(line.y[i])) told += str(" smoothed, ", chart.figures.text(line.y[i]));
    text += str("<circle class=\"", line.has_points ? "dot" : "hover", "\" cx=\"", at(scale.place_x(line.x[i])), "\" cy=\"",
                at(scale.place_y(y[i])), "\" r=\"", line.has_points ? "3" : "5", "\"><title>", escaped(told), "</title></circle>\n");
  }
  return text;
}

// Crosses on the axis where a number was not finite.
std::string bad_places(const SvgLine& line, const LineChart& chart, const Scale& scale) {
  std::string text;
  size_t num_bad = 0;
  for (size_t i = 0; i < line.y.size(); ++i) {
    if (std::isfinite(line.y[i]) || ++num_bad > kMostBad) continue;
    const double x = scale.place_x(line.x[i]), y = kHeight - kBottom;
    text += str("<path class=\"bad\" d=\"M", at(x - 3), " ", at(y - 3), "L", at(x + 3), " ", at(y + 3), "M", at(x - 3), " ", at(y + 3), "L",
                at(x + 3), " ", at(y - 3), "\"><title>",
                escaped(str(line.label, line.label.empty() ? "" : ", ", chart.x_name, " ", format_number(line.x[i]),
                            ": not a finite number (", std::isnan(line.y[i]) ? "NaN" : "infinite", ")")),
                "</title></path>\n");
  }
  return text;
}

std::string shown_digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  const std::string shown(text.data());
  return shown.find_first_not_of("-0.") == std::string::npos && shown.starts_with('-') ? shown.substr(1) : shown;
}

}  // namespace

std::string escaped(std::string_view given) {
  const std::string text = utf8_replace_invalid(given);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_control = (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f;
        out += is_control ? "\xef\xbf\xbd" : std::string(1, c);
      }
    }
  }
  return out;
}

std::vector<double> nice_ticks(double low, double high, size_t most) {
  if (low >= high || most < 2) return {low};
  const double rough = (high - low) / static_cast<double>(most);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (const double candidate = factor * power;
        std::floor(high / candidate) - std::ceil(low / candidate) + 1 <= static_cast<double>(most)) {
      step = candidate;
      break;
    }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (size_t i = 0; i < most && (first + static_cast<double>(i)) * step <= high + step * 1e-9; ++i)
    ticks.push_back((first + static_cast<double>(i)) * step);
  return ticks;
}

std::string Figures::text(double value) const { return format_number(value * scale) + suffix; }

std::string Figures::tick(double value, double step) const {
  const double most = std::max(std::abs(value), step);
  if (value != 0 && (most >= 1e6 || step < 1e-4)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data() + suffix;
  }
  const int digits = step <= 0 ? 2 : std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 6);
  return shown_digits(value, digits) + suffix;
}

std::string svg_of(const LineChart& chart) {
  Scale scale;
  for (const SvgLine& line : chart.lines)
    for (size_t i = 0; i < line.x.size(); ++i) {
      scale.x.add(line.x[i]);
      scale.y.add(line.y[i]);
    }
  if (scale.y.empty()) return nothing_to_draw(chart.title);
  scale.x.widen();
  const Range data = scale.y;
  scale.y.widen();
  if (chart.figures.is_share()) scale.y.keep_within(data, 0, 1);
  std::string text = opening(chart.title) + y_axis(scale, chart.figures) + x_axis(scale, chart.x_name);
  for (const SvgLine& line : chart.lines) {
    text += str("<g class=\"", colour_class(line.colour), "\">\n");
    if (!line.smooth.empty()) text += stroke(line, "raw", line.y, scale);
    text += stroke(line, line.has_points ? "points" : "line", line.smooth.empty() ? line.y : line.smooth, scale);
    text += bad_places(line, chart, scale) + "</g>\n";
  }
  for (const SvgLine& line : chart.lines)  // over all lines, so that none hides them
    text += str("<g class=\"", colour_class(line.colour), "\">\n", tooltips(line, chart, scale), "</g>\n");
  return text + "</svg>\n";
}

std::string svg_of(const BarChart& chart) {
  Scale scale;
  scale.x = {0, static_cast<double>(chart.bars.size())};
  scale.y = {0, chart.highest};
  for (const Bar& bar : chart.bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += std::isfinite(part) ? part : 0;
    scale.y.add(sum);
  }
  if (chart.bars.empty() || scale.y.high <= 0) return nothing_to_draw(chart.title);
  std::string text = opening(chart.title) + y_axis(scale, chart.figures);
  const double base = kHeight - kBottom, room = scale.place_x(1) - scale.place_x(0), gap = std::min(3.0, room * 0.15);
  const size_t each = (chart.bars.size() + kMostXTicks - 1) / kMostXTicks;  // labels have room below some bars alone
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double left = scale.place_x(static_cast<double>(i)) + gap / 2;
    double below = 0;
    for (size_t part = 0; part < bar.parts.size(); ++part) {
      if (!(bar.parts[part] > 0) || !std::isfinite(bar.parts[part])) continue;
      const double top = scale.place_y(below + bar.parts[part]);
      text += str("<rect class=\"part k", part % kNumColours, "\" x=\"", at(left), "\" y=\"", at(top), "\" width=\"", at(room - gap),
                  "\" height=\"", at(scale.place_y(below) - top), "\"><title>",
                  escaped(str(bar.label, ", ", chart.part_names.at(part), ": ", chart.figures.text(bar.parts[part]))), "</title></rect>\n");
      below += bar.parts[part];
    }
    if (i % each == 0) text += text_at(left + (room - gap) / 2, base + 16, "middle", bar.label, i / each % 2 == 1);
  }
  return text + straight("axis", kLeft, base, kWidth - kRight, base) + "</svg>\n";
}

std::string legend_of(const std::vector<LegendEntry>& entries) {
  std::string text = "<div class=\"legend\">";
  for (const LegendEntry& entry : entries)
    text += str("<span class=\"", colour_class(entry.colour), "\"><i",
                entry.has_points  ? " class=\"dotted\""
                : entry.is_dashed ? " class=\"dashed\""
                                  : "",
                "></i>", escaped(entry.label), "</span>");
  return text + "</div>\n";
}

}  // namespace kedge::cli
