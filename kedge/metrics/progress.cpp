#include "kedge/metrics/progress.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

constexpr int kMinBar = 12;
constexpr int kMaxBar = 32;

std::string digits(double value, std::chars_format format, int precision) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr};
}

std::string two_digits(int64_t value) { return str(value < 10 ? "0" : "", value); }

int width_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string cut_to(std::string_view text, int columns) {
  size_t end = 0;
  for (int i = 0; i < columns && end < text.size(); ++i) end += std::max<size_t>(1, utf8_length(text.substr(end)));
  return std::string(text.substr(0, end));
}

std::string eta_of(const ProgressView& view) {
  if (view.total < 0 || view.steps_per_s <= 0 || view.done >= view.total) return "";
  return str("eta ", format_duration(static_cast<double>(view.total - view.done) / view.steps_per_s));
}

double fraction_of(const ProgressView& view) {
  if (view.total <= 0) return 1;
  return std::clamp(static_cast<double>(view.done) / static_cast<double>(view.total), 0.0, 1.0);
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e11)) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return str(whole, "s");
  if (whole < 3600) return str(whole / 60, "m", two_digits(whole % 60), "s");
  if (whole < 86400) return str(whole / 3600, "h", two_digits(whole % 3600 / 60), "m");
  return str(whole / 86400, "d", two_digits(whole % 86400 / 3600), "h");
}

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e9 && (size >= 9999.5 || value == std::trunc(value))) return digits(value, std::chars_format::fixed, 0);
  std::string text = digits(value, std::chars_format::general, 4);
  // e-05 reads no better than e-5
  if (const size_t exponent = text.find('e'); exponent != std::string::npos && text[exponent + 2] == '0') text.erase(exponent + 2, 1);
  return text;
}

std::string format_rate(double steps_per_s) {
  if (steps_per_s >= 1) return str(format_number(std::round(steps_per_s * 10) / 10), " steps/s");
  return str(format_number(std::round(10 / steps_per_s) / 10), " s/step");
}

std::string format_bar(double fraction, int width, bool utf8) {
  const int inside = std::max(0, width - 2);
  std::string bar;
  if (utf8) {
    static constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int eighths = static_cast<int>(fraction * inside * 8);
    for (int i = 0; i < eighths / 8; ++i) bar += "█";
    bar += kEighths.at(static_cast<size_t>(eighths % 8));
  } else {
    const int full = static_cast<int>(fraction * inside);
    bar.assign(static_cast<size_t>(full), '=');
    if (full > 0 && full < inside) bar.back() = '>';
  }
  bar.append(static_cast<size_t>(std::max(0, inside - width_of(bar))), ' ');
  return utf8 ? str("│", bar, "│") : str("[", bar, "]");
}

std::string format_progress_line(const ProgressView& view) {
  std::string line = str(view.title, " ", view.done);
  if (view.total >= 0) line += str("/", view.total);
  for (const auto& [name, value] : view.numbers) line += str("  ", name, " ", format_number(value));
  if (const std::string eta = eta_of(view); !eta.empty()) line += str("  ", eta);
  if (view.total >= 0 && view.done >= view.total) line += str("  in ", format_duration(view.elapsed_s));
  return line;
}

std::string format_progress_bar(const ProgressView& view, int columns, bool utf8) {
  std::string counts = std::to_string(view.done);
  if (view.total >= 0) {
    const std::string total = std::to_string(view.total);
    counts.insert(0, counts.size() < total.size() ? total.size() - counts.size() : 0, ' ');  // so that the rest does not move
    const std::string percent = std::to_string(static_cast<int>(fraction_of(view) * 100));
    counts += str("/", total, " ", std::string(4 - std::min<size_t>(4, percent.size() + 1), ' '), percent, "%");
  }
  int left = columns - width_of(counts);
  if (left < 0) return cut_to(counts, columns);
  // In the order of importance each part takes its room, up to the first that finds none; the bar gets what is left.
  bool is_full = false;
  const auto take = [&](int width) {
    is_full = is_full || width > left;
    if (!is_full) left -= width;
    return !is_full;
  };
  const auto part = [&](const std::string& text) { return !text.empty() && take(width_of(text) + 2) ? str("  ", text) : std::string(); };
  const std::string title = take(width_of(view.title) + 1) ? str(view.title, " ") : "";
  const bool has_bar = view.total >= 0 && take(kMinBar + 1);
  const std::string eta = part(eta_of(view));
  std::string numbers;
  for (const auto& [name, value] : view.numbers) numbers += part(str(name, " ", format_number(value)));
  const std::string elapsed = part(format_duration(view.elapsed_s));
  const std::string rate = part(view.steps_per_s > 0 ? format_rate(view.steps_per_s) : "");
  const std::string bar = has_bar ? str(" ", format_bar(fraction_of(view), kMinBar + std::min(left, kMaxBar - kMinBar), utf8)) : "";
  return str(title, counts, bar, elapsed, eta, rate, numbers);
}

void RateMeter::update(int64_t done, double now_s) {
  if (!started_ || done < last_done_) {
    *this = RateMeter();
    started_ = true;
    start_s_ = now_s;
  } else {
    const double passed_s = now_s - last_s_;
    const double keep = std::max(0.9, std::exp(-passed_s / 30));
    steps_ = steps_ * keep + static_cast<double>(done - last_done_);
    seconds_ = seconds_ * keep + passed_s;
  }
  last_s_ = now_s;
  last_done_ = done;
}

bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang) {
  for (const char* value : {lc_all, lc_ctype, lang}) {
    if (value == nullptr || *value == '\0') continue;
    std::string name = value;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace kedge
