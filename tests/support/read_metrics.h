#pragma once
// What a JsonlSink wrote to its metrics.jsonl, including numbers that are strings.
#include <string>
#include <vector>

#include "kedge/metrics/jsonl.h"

namespace kedge::testing {

inline std::vector<MetricsLine> read_metrics(const Path& path) {
  std::vector<MetricsLine> lines;
  for (const JsonlLine& line : read_jsonl(path)) {
    MetricsLine read{line.value.at("step", "step").as_integer("step"), read_metric(line.value.at("time", "time"), "time"), {}};
    for (const auto& [name, value] : line.value.as_object("line"))
      if (name != "step" && name != "time") read.metrics.set(name, read_metric(value, name));
    lines.push_back(std::move(read));
  }
  return lines;
}

}  // namespace kedge::testing
