#include "cli/text/json_lines.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/core/log.h"

namespace kedge::cli {

JsonLines::JsonLines(const std::string& input)
    : name_(input == "-" ? "standard input" : input), stream_(input == "-" ? std::cin : static_cast<std::istream&>(file_)) {
  if (input == "-") return;
  check(!is_folder(input), input, ": is a folder; expected a file of JSON lines");
  file_.open(input, std::ios::binary);
  check(file_.is_open(), input, ": cannot be read: ", std::strerror(errno));
}

// A read from a terminal continues after a signal: wait for input first.
void JsonLines::wait_for_terminal(const StopQuestion& stop) {
  if (!stop || &stream_ != &std::cin || ::isatty(STDIN_FILENO) != 1) return;
  if (!std::exchange(has_told_, true)) log_info("reading JSON lines from the terminal; Ctrl-D ends, --help lists other ways");
  pollfd typed{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!stop() && ::poll(&typed, 1, static_cast<int>(kStopPeriod.count())) <= 0) {
  }
}

std::optional<JsonLine> JsonLines::next(const StopQuestion& stop) {
  std::string line;
  while (true) {
    wait_for_terminal(stop);
    if ((stop && stop()) || !std::getline(stream_, line)) break;
    ++number_;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return JsonLine{Json::parse(line, name_, number_), str(name_, ":", number_)};
  }
  if (stream_.bad()) throw Error(str(name_, ": cannot be read to the end"));
  return std::nullopt;
}

void for_each_json_line(const std::string& input, const std::function<void(const Json& value, const std::string& where)>& use) {
  JsonLines lines(input);
  while (const auto line = lines.next()) use(line->value, line->where);
}

Json short_number(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.begin(), text.end(), value);
  double number = 0;
  std::from_chars(text.begin(), written.ptr, number);
  return number;
}

void print_json_line(const Json& value) { print_text(value.dump() + "\n"); }

void print_text(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1) set_status_line("");  // the text would continue after it
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(str("standard output: cannot be written: ", std::strerror(errno)));
}

}  // namespace kedge::cli
