#include "kedge/metrics/metrics.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>

#include "kedge/core/log.h"

namespace kedge {

Metrics::Metrics(std::initializer_list<Entry> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Metrics::set(std::string_view name, double value) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  if (found == entries_.end()) {
    entries_.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

void Metrics::merge(const Metrics& other) {
  for (const auto& [name, value] : other) set(name, value);
}

Metrics Metrics::with_prefix(std::string_view prefix) const {
  Metrics prefixed;
  for (const auto& [name, value] : entries_) prefixed.entries_.emplace_back(std::string(prefix) + name, value);
  return prefixed;
}

std::optional<double> Metrics::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

// A failure is logged the 1st, 2nd, 4th, 8th ... time, so a disk that stays nearly full does not flood the log.
void MetricsLog::for_each_sink(Call call, const std::function<void(Sink&)>& run) {
  for (Guarded& guarded : sinks_) {
    try {
      run(*guarded.sink);
    } catch (const std::runtime_error& error) {  // an I/O error; a bug is a logic_error and propagates
      if (std::has_single_bit(++guarded.num_failures)) {
        log_warn("METRICS ARE BEING LOST: ", error.what(), " (failure ", guarded.num_failures, "; the run continues and retries)");
        guarded.failing = call;
      }
      continue;
    }
    if (guarded.failing == call) {
      log_warn("metrics are written again, after ", guarded.num_failures, guarded.num_failures == 1 ? " failure" : " failures");
      guarded.failing.reset();
    }
  }
}

void MetricsLog::write(int64_t step, const Metrics& metrics) {
  if (sinks_.empty()) return;
  Metrics all = metrics;
  if (more_names_) all.merge(more_names_(metrics));
  for_each_sink(Call::write, [&](Sink& sink) { sink.write(step, all); });
}

void MetricsLog::write_samples(int64_t step, const SampleTable& table) {
  for_each_sink(Call::samples, [&](Sink& sink) { sink.write_samples(step, table); });
}

void MetricsLog::report(const Progress& progress) {
  for_each_sink(Call::report, [&](Sink& sink) { sink.report(progress); });
}

void MetricsLog::flush() {
  for_each_sink(Call::flush, [](Sink& sink) { sink.flush(); });
}

SinkPositions MetricsLog::positions() {
  flush();
  SinkPositions positions;
  for (const Guarded& guarded : sinks_) guarded.sink->record(positions);
  return positions;
}

void MetricsLog::resume(int64_t step, const SinkPositions& positions) {
  for (Guarded& guarded : sinks_) guarded.sink->resume(step, positions);
}

void MetricsLog::finish(RunOutcome end) {
  for_each_sink(Call::finish, [&](Sink& sink) { sink.finish(end); });
}

double seconds_since_epoch() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace kedge
