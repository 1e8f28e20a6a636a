#include "cli/text/row_progress.h"

#include "kedge/core/log.h"
#include "kedge/metrics/progress.h"

namespace kedge::cli {

RowProgress::~RowProgress() { set_status_line(""); }

void RowProgress::add(int64_t num_rows, int64_t num_tokens, double seconds) {
  constexpr std::chrono::milliseconds kShowEvery(100);  // a step may take less than the terminal takes to draw the line
  constexpr std::chrono::seconds kSayEvery(30);
  num_rows_ += num_rows;
  num_tokens_ += num_tokens;
  seconds_ += seconds;
  const auto now = Clock::now();
  if (now - last_shown_ >= kShowEvery) {
    set_status_line(summary());
    last_shown_ = now;
  }
  if (!log_to_terminal() && now - last_said_ > kSayEvery) {
    log_info(summary());
    last_said_ = now;
  }
}

std::string RowProgress::summary() const {
  std::string text = str(num_rows_, num_rows_ == 1 ? " row, " : " rows, ", num_tokens_, num_tokens_ == 1 ? " token" : " tokens");
  if (seconds_ > 0) text += str(", ", format_number(static_cast<double>(num_tokens_) / seconds_), " tokens/s");
  return text;
}

}  // namespace kedge::cli
