#include "cli/json_lines.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "kedge/core/error.h"
#include "kedge/core/files.h"

namespace kedge::cli {

void for_each_json_line(const std::string& input, const std::function<void(const Json& value, const std::string& where)>& use) {
  std::ifstream file;
  if (input != "-") {
    check(!is_folder(input), input, ": is a folder; wants a file of JSON lines");
    file.open(input, std::ios::binary);
    check(file.is_open(), input, ": cannot be read: ", std::strerror(errno));
  }
  std::istream& stream = input == "-" ? std::cin : file;
  const std::string name = input == "-" ? "standard input" : input;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    use(Json::parse(line, name, number), str(name, ":", number));
  }
  if (stream.bad()) throw Error(str(name, ": cannot be read to the end"));
}

Json short_number(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.begin(), text.end(), value);
  double number = 0;
  std::from_chars(text.begin(), written.ptr, number);
  return number;
}

void print_json_line(const Json& value) {
  const std::string text = value.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(str("standard output: cannot be written: ", std::strerror(errno)));
}

}  // namespace kedge::cli
