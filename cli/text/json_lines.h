#pragma once
// JSON lines from a file or standard input, one at a time, for the tools that pipe.
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/json.h"
#include "kedge/core/stop.h"

namespace kedge::cli {

struct JsonLine {
  Json value;
  std::string where;  // "FILE:LINE"
};

// The lines of a file ("-" is standard input), each read on request. Blank ones are skipped; one that is not JSON is a UsageError.
class JsonLines {
 public:
  explicit JsonLines(const std::string& input);
  // None at the end. While waiting for a terminal, also none once `stop` reports a signal.
  [[nodiscard]] std::optional<JsonLine> next(const StopQuestion& stop = {});

 private:
  void wait_for_terminal(const StopQuestion& stop);

  std::string name_;
  std::ifstream file_;
  std::istream& stream_;
  int64_t number_ = 0;
  bool has_told_ = false;
};

// Calls `use(value, where)` for every line as it arrives.
void for_each_json_line(const std::string& input, const std::function<void(const Json& value, const std::string& where)>& use);

// With the fewest digits that read back to the same float; NaN and infinities are null.
[[nodiscard]] Json short_number(float value);

// One line on standard output, at once, so that what reads it need not wait.
void print_json_line(const Json& value);
// Plain text, also at once.
void print_text(std::string_view text);

}  // namespace kedge::cli
