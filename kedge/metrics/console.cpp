#include "kedge/metrics/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <utility>

#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr int kDefaultColumns = 80;

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultColumns;
}

bool is_complete(const Progress& progress) { return progress.total >= 0 && progress.done >= progress.total; }

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

Screen standard_screen() {
  return {.is_terminal = log_to_terminal(),
          .is_utf8 = is_utf8_locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG")),
          .columns = terminal_columns,
          .set_bar = set_status_line,
          .add_line = [](std::string_view text) { log_info(text); },
          .clock = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }};
}

ConsoleSink::ConsoleSink(ConsoleOptions options, Screen screen)
    : options_(std::move(options)),
      screen_(std::move(screen)),
      next_draw_s_(-std::numeric_limits<double>::infinity()),
      next_line_s_(next_draw_s_) {}

ConsoleSink::~ConsoleSink() {
  if (screen_.is_terminal) screen_.set_bar("");
  if (!works_.empty() && !works_.front().shown_as_line) screen_.add_line(format_progress_line(view_of(works_.front())));
}

void ConsoleSink::write(int64_t step, const Metrics& metrics) {
  latest_.merge(metrics);
  if (!is_reported_) return show(update({.done = step}));
  if (screen_.is_terminal) show(works_.at(current_));  // a plain line waits for the end of the step
}

void ConsoleSink::report(const Progress& progress) {
  if (!std::exchange(is_reported_, true)) works_.clear();  // what was guessed from written steps
  show(update(progress));
}

ConsoleSink::Work& ConsoleSink::update(const Progress& progress) {
  const auto same = [&](const Work& work) { return work.progress.title == progress.title; };
  auto found = std::find_if(works_.begin(), works_.end(), same);
  if (found == works_.end()) found = works_.insert(works_.end(), Work{});
  found->progress = progress;
  found->meter.update(progress.done, screen_.clock());
  found->shown_as_line = false;
  current_ = static_cast<size_t>(found - works_.begin());
  return *found;
}

void ConsoleSink::show(Work& work) {
  const double now = screen_.clock();
  const bool run_is_complete = is_complete(work.progress) && &work == &works_.front();
  double& next = screen_.is_terminal ? next_draw_s_ : next_line_s_;
  if (now < next && !run_is_complete) return;
  if (screen_.is_terminal) {
    next = now + options_.redraw_s;
    screen_.set_bar(format_progress_bar(view_of(work), screen_.columns() - 1, screen_.is_utf8));  // a full line would wrap
  } else {
    next = now + options_.line_s;
    screen_.add_line(format_progress_line(view_of(work)));
    work.shown_as_line = true;
  }
}

ProgressView ConsoleSink::view_of(const Work& work) const {
  return {.title = work.progress.title,
          .done = work.progress.done,
          .total = work.progress.total,
          .elapsed_s = work.meter.elapsed_s(screen_.clock()),
          .steps_per_s = work.meter.steps_per_s(),
          .numbers = numbers()};
}

std::vector<std::pair<std::string, double>> ConsoleSink::numbers() const {
  std::vector<std::pair<std::string, double>> shown;
  if (options_.keys.empty()) {
    for (const auto& [name, value] : latest_)
      if (!name.starts_with("timers/")) shown.emplace_back(name, value);
  } else {
    for (const std::string& key : options_.keys)
      if (const auto value = latest_.find(key)) shown.emplace_back(key, *value);
  }
  if (shown.size() > options_.max_numbers) shown.resize(options_.max_numbers);

  const std::vector<std::pair<std::string, double>> full = shown;
  for (auto& [name, value] : shown) {  // the last part of the name where that is not shared
    const auto shares = [&, part = last_part(name)](const auto& other) { return last_part(other.first) == part; };
    if (std::count_if(full.begin(), full.end(), shares) == 1) name = std::string(last_part(name));
  }
  return shown;
}

}  // namespace kedge
