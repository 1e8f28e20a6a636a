#include "kedge/core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "kedge/core/utf8.h"

namespace kedge {
namespace {

struct State {
  std::mutex mutex;
  LogSetup setup;
  LogLevel screen_level = LogLevel::debug;
  std::string status;  // the current line below the log
  int file = -1;
};

State& state() {
  static State instance;
  return instance;
}

struct LevelLook {
  LogLevel level;
  std::string_view name;    // as the user writes it
  std::string_view label;   // as the line shows it
  std::string_view colour;  // terminal escape
};
constexpr std::array<LevelLook, 4> kLooks = {{
    {LogLevel::debug, "debug", "debug ", "\x1b[2m"},
    {LogLevel::info, "info", "", ""},
    {LogLevel::warn, "warn", "warning ", "\x1b[33m"},
    {LogLevel::error, "error", "error ", "\x1b[31m"},
}};

const LevelLook& look_of(LogLevel level) { return kLooks.at(static_cast<size_t>(level)); }

void write_all(std::string_view text, int file = STDERR_FILENO) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count <= 0) return;  // there is nowhere left to report it
    text.remove_prefix(static_cast<size_t>(count));
  }
}

std::string now_as(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  const size_t length = std::strftime(text.data(), text.size(), format, &local);
  return {text.data(), length};
}

}  // namespace

void set_up_log(const LogSetup& setup) {
  const std::lock_guard lock(state().mutex);
  state().setup = setup;
}

void set_screen_level(LogLevel level) {
  const std::lock_guard lock(state().mutex);
  state().screen_level = level;
}

LogLevel parse_log_level(std::string_view name) {
  for (const LevelLook& look : kLooks)
    if (look.name == name) return look.level;
  throw UsageError(str("log level: expected debug, info, warn or error, found \"", name, "\""));
}

bool log_to_terminal() {
  static const bool is_terminal = [] {
    const char* term = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  }();
  return is_terminal;
}

void set_status_line(std::string_view text) {
  if (!log_to_terminal()) return;
  const std::lock_guard lock(state().mutex);
  if (text == state().status) return;
  state().status = text;
  write_all(str("\r\x1b[K", text));
}

std::string format_log_line(LogLevel level, std::string_view text, std::string_view clock, const LogSetup& setup) {
  const std::string rank = setup.num_ranks > 1 ? str("[rank ", setup.rank, "] ") : "";
  return str(clock, " ", look_of(level).label, rank, utf8_without_controls(text));  // it may be a server's or a reward program's
}

void log_line(LogLevel level, std::string_view text) {
  const std::lock_guard lock(state().mutex);
  const LogSetup& setup = state().setup;
  if (level < setup.level) return;
  if (level < LogLevel::warn && setup.rank != 0) return;
  if (state().file >= 0) write_all(format_log_line(level, text, now_as("%F %T"), setup) + "\n", state().file);
  if (level < state().screen_level) return;
  const std::string line = format_log_line(level, text, now_as("%T"), setup);
  if (!log_to_terminal()) {
    write_all(str(line, "\n"));
    return;
  }
  const std::string_view colour = look_of(level).colour;
  write_all(str("\r\x1b[K", colour, line, colour.empty() ? "" : "\x1b[0m", "\n", state().status));
}

bool is_log_of_first_rank() {
  const std::lock_guard lock(state().mutex);
  return state().setup.rank == 0;
}

void set_log_file(const std::string& path) {
  const int file = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (!path.empty() && file < 0) throw Error(str(path, ": cannot be opened for the log"));
  const std::lock_guard lock(state().mutex);
  if (state().file >= 0) ::close(state().file);
  state().file = file;
}

}  // namespace kedge
