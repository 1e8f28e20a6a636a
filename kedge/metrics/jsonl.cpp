#include "kedge/metrics/jsonl.h"

#include <cmath>
#include <limits>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Path& made(const Path& folder) {
  make_folder(folder);
  return folder;
}

std::string name_of(const JsonlLog& file) { return file.path().filename().string(); }

Json line_of(int64_t step, double time) {
  Json line;
  line.append("step", step);
  line.append("time", metric_json(time));
  return line;
}

// A file with an unreadable line is kept as it is.
int64_t first_of_step(const Path& file, int64_t step) {
  const auto size = static_cast<int64_t>(MappedFile(file).size());
  try {
    for (const JsonlLine& line : read_jsonl(file)) {
      const std::string where = str(file.string(), ":", line.number);
      if (line.value.at("step", where).as_integer(str(where, ": \"step\"")) >= step) return line.offset;
    }
  } catch (const UsageError& error) {
    log_warn(error.what(), "; the file is kept as it is, so some steps may occur twice");
  }
  return size;
}

}  // namespace

JsonlSink::JsonlSink(const Path& folder, WallClock clock)
    : clock_(std::move(clock)), metrics_(made(folder) / "metrics.jsonl"), samples_(folder / "samples.jsonl") {}

void JsonlSink::write(int64_t step, const Metrics& metrics) {
  Json line = line_of(step, clock_());
  for (const auto& [name, value] : metrics) {
    ensure(name != "step" && name != "time", "a metric may not be called \"", name, "\"");
    line.append(name, metric_json(value));
  }
  metrics_.append(line);
}

void JsonlSink::write_samples(int64_t step, const SampleTable& table) {
  const double now = clock_();
  for (const Sample& sample : table.rows) {
    Json line = line_of(step, now);
    line.append("table", table.name);
    line.append("prompt", sample.prompt);
    line.append("response", sample.response);
    if (sample.reward) line.append("reward", metric_json(*sample.reward));
    for (const auto& [name, value] : sample.extra) {
      ensure(line.find(name) == nullptr, "a further column of a sample may not be called \"", name, "\"");
      line.append(name, value);
    }
    samples_.append(line);
  }
}

void JsonlSink::flush() {
  metrics_.sync();
  samples_.sync();
}

void JsonlSink::record(SinkPositions& positions) const {
  for (const JsonlLog* file : {&metrics_, &samples_}) positions[name_of(*file)] = file->offset();
}

void JsonlSink::resume(int64_t step, const SinkPositions& positions) {
  for (JsonlLog* file : {&metrics_, &samples_}) {
    const auto found = positions.find(name_of(*file));
    if (found != positions.end() && !starts_a_line(file->path(), found->second))
      log_warn(file->path().string(), ": was changed since the checkpoint: it has ", file->offset(), " bytes, and a line ended at byte ",
               found->second, " then. The run continues without the missing lines; lines of step ", step, " and later are removed");
    file->cut_back(resume_offset(file->path(), step, positions));
  }
}

int64_t resume_offset(const Path& file, int64_t step, const SinkPositions& positions) {
  if (!is_file(file)) return 0;
  const auto found = positions.find(file.filename().string());
  if (found != positions.end() && starts_a_line(file, found->second)) return found->second;
  return first_of_step(file, step);
}

Json metric_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

double read_metric(const Json& value, std::string_view where) {
  if (value == Json("NaN")) return std::numeric_limits<double>::quiet_NaN();
  if (value == Json("Infinity")) return kInfinity;
  if (value == Json("-Infinity")) return -kInfinity;
  return value.as_number(where);
}

}  // namespace kedge
