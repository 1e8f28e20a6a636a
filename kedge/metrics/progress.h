#pragma once
// How far and how fast a run goes, as text: durations, numbers, the bar, the complete line. Independent of terminals and clocks.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge {

[[nodiscard]] std::string format_duration(double seconds);  // 42s, 3m12s, 2h05m, 3d04h
[[nodiscard]] std::string format_number(double value);      // four digits, or all digits of an integer below 1e9
[[nodiscard]] std::string format_rate(double steps_per_s);  // "2.5 steps/s" or "3.2 s/step"

// A bar of `width` columns, its ends included: │███▌   │ or [===>   ].
[[nodiscard]] std::string format_bar(double fraction, int width, bool utf8);

struct ProgressView {
  std::string title;
  int64_t done = 0;
  int64_t total = -1;      // -1: unknown
  double elapsed_s = 0;    // in this process
  double steps_per_s = 0;  // 0: not known yet
  std::vector<std::pair<std::string, double>> numbers{};
};

// "step 12/100  loss 1.234  reward 0.56  eta 3m12s"
[[nodiscard]] std::string format_progress_line(const ProgressView& view);

// "step  12/100  12% │█▏        │ 42s  eta 3m12s  2.1 s/step  loss 1.234", at most `columns` wide. What does not fit is left out:
// first the rate, then the elapsed time, the numbers from the last, the time to go, the bar, the title.
[[nodiscard]] std::string format_progress_bar(const ProgressView& view, int columns, bool utf8);

// Steps per second, smoothed over about the last ten updates or 30 seconds, whichever is longer. Counts from the first update, so
// the steps of an earlier process do not make a resumed run look fast.
class RateMeter {
 public:
  void update(int64_t done, double now_s);  // fewer steps than before: starts again
  [[nodiscard]] double steps_per_s() const { return seconds_ > 0 ? steps_ / seconds_ : 0; }
  [[nodiscard]] double elapsed_s(double now_s) const { return started_ ? now_s - start_s_ : 0; }

 private:
  bool started_ = false;
  double start_s_ = 0;
  double last_s_ = 0;
  int64_t last_done_ = 0;
  double steps_ = 0;  // both decay equally
  double seconds_ = 0;
};

// Does the character set of these environment variables (LC_ALL, LC_CTYPE, LANG; null or empty: not set) hold a bar's characters?
[[nodiscard]] bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang);

}  // namespace kedge
