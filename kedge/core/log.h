#pragma once
// Lines for people, on standard error: level, time, rank. Metrics go to MetricsLog instead.
// Thread-safe. One status line (a progress bar) may be below the log; lines are written above it.
#include <string>
#include <string_view>

#include "kedge/core/error.h"

namespace kedge {

enum class LogLevel { debug, info, warn, error };

struct LogSetup {
  LogLevel level = LogLevel::info;
  int rank = 0;       // lines below `warn` are written by rank 0 only
  int num_ranks = 1;  // above 1, every line names its rank
};

void set_up_log(const LogSetup& setup);
// Lines below this level are not written to standard error, but still to the log file.
void set_screen_level(LogLevel level);
[[nodiscard]] LogLevel parse_log_level(std::string_view name);

// Is standard error a terminal that understands colour and cursor movement?
[[nodiscard]] bool log_to_terminal();

// Replaces the line below the log; empty removes it. Does nothing without a terminal.
void set_status_line(std::string_view text);

void log_line(LogLevel level, std::string_view text);
[[nodiscard]] bool is_log_of_first_rank();

// From now on lines are also appended to a file, with the date, up to the error that ends the process. Empty: stop that.
void set_log_file(const std::string& path);

// What `log_line` writes, without colour: "12:03:59 warning [rank 2] text".
[[nodiscard]] std::string format_log_line(LogLevel level, std::string_view text, std::string_view clock, const LogSetup& setup);

template <typename... Parts>
void log_debug(const Parts&... parts) {
  log_line(LogLevel::debug, str(parts...));
}
template <typename... Parts>
void log_info(const Parts&... parts) {
  log_line(LogLevel::info, str(parts...));
}
template <typename... Parts>
void log_warn(const Parts&... parts) {
  log_line(LogLevel::warn, str(parts...));
}
// Of what every rank finds, such as a setting or a file that all of them read: rank 0 alone says it.
template <typename... Parts>
void log_warn_of_job(const Parts&... parts) {
  if (is_log_of_first_rank()) log_warn(parts...);
}
template <typename... Parts>
void log_error(const Parts&... parts) {
  log_line(LogLevel::error, str(parts...));
}

}  // namespace kedge
