#pragma once
// Lines that become ready in any order, printed in the order of the input, so that the output of a pipe lines up with its input.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "kedge/core/json.h"

namespace kedge::cli {

class LineOrder {
 public:
  // Not `in_order`: each is printed as soon as it is ready.
  LineOrder(bool in_order, std::function<void(const Json& line)> print) : in_order_(in_order), print_(std::move(print)) {}

  // Row `index` is going to have this many lines.
  void expect(int64_t index, int64_t num_lines);
  // Line `number` of row `index`, counted from 0; expected, and given once.
  void ready(int64_t index, int64_t number, Json line);
  // End of input: prints lines that waited for missing ones.
  void finish();

 private:
  bool in_order_;
  std::function<void(const Json& line)> print_;
  std::map<std::pair<int64_t, int64_t>, std::optional<Json>> lines_;
};

}  // namespace kedge::cli
