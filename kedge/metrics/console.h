#pragma once
// Progress on the console: a live bar below the log on a terminal, plain log lines at a bounded rate elsewhere.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/metrics/metrics.h"
#include "kedge/metrics/progress.h"

namespace kedge {

struct ConsoleOptions {
  std::vector<std::string> keys{};  // metrics to show, by full name; empty: the first ones written, timers left out
  size_t max_numbers = 4;
  double redraw_s = 0.1;  // between two draws of the bar, at least
  double line_s = 5;      // between two plain lines, at least
};

// The sink's environment; tests replace it.
struct Screen {
  bool is_terminal;
  bool is_utf8;
  std::function<int()> columns;                   // called at every redraw: windows change size
  std::function<void(std::string_view)> set_bar;  // empty removes it
  std::function<void(std::string_view)> add_line;
  std::function<double()> clock;  // monotonic seconds
};
[[nodiscard]] Screen standard_screen();

// Shows the title reported last. At its end it prints one line about the first title, which covers the complete run.
class ConsoleSink final : public Sink {
 public:
  explicit ConsoleSink(ConsoleOptions options = {}, Screen screen = standard_screen());
  ~ConsoleSink() override;
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  void write(int64_t step, const Metrics& metrics) override;  // also counts as progress if none is reported
  void report(const Progress& progress) override;

 private:
  struct Work {
    Progress progress;
    RateMeter meter;
    bool shown_as_line;  // the current state
  };
  Work& update(const Progress& progress);
  void show(Work& work);
  [[nodiscard]] ProgressView view_of(const Work& work) const;
  [[nodiscard]] std::vector<std::pair<std::string, double>> numbers() const;

  ConsoleOptions options_;
  Screen screen_;
  Metrics latest_;           // of each name
  std::vector<Work> works_;  // one per title
  size_t current_ = 0;
  bool is_reported_ = false;  // or guessed from the steps that were written
  double next_draw_s_;
  double next_line_s_;
};

}  // namespace kedge
