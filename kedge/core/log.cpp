#include "kedge/core/log.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>

namespace kedge {
namespace {

struct State {
  std::mutex mutex;
  LogSetup setup;
  std::string status;  // the line that stands below the log now
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

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;  // nobody is left to tell
    text.remove_prefix(static_cast<size_t>(count));
  }
}

std::string clock_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return {text.data(), length};
}

}  // namespace

void set_up_log(const LogSetup& setup) {
  const std::lock_guard lock(state().mutex);
  state().setup = setup;
}

LogLevel parse_log_level(std::string_view name) {
  for (const LevelLook& look : kLooks)
    if (look.name == name) return look.level;
  throw UsageError(str("log level: wants debug, info, warn or error, found \"", name, "\""));
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
  return str(clock, " ", look_of(level).label, rank, text);
}

void log_line(LogLevel level, std::string_view text) {
  const std::lock_guard lock(state().mutex);
  const LogSetup& setup = state().setup;
  if (level < setup.level) return;
  if (level < LogLevel::warn && setup.rank != 0) return;
  const std::string line = format_log_line(level, text, clock_now(), setup);
  if (!log_to_terminal()) {
    write_all(str(line, "\n"));
    return;
  }
  const std::string_view colour = look_of(level).colour;
  write_all(str("\r\x1b[K", colour, line, colour.empty() ? "" : "\x1b[0m", "\n", state().status));
}

}  // namespace kedge
