#pragma once
// Numbers with names, samples of text, and the sinks they go to. Independent of where they were measured.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

// Names and their numbers, in the order in which the names were first set.
class Metrics {
 public:
  using Entry = std::pair<std::string, double>;
  using value_type = Entry;
  using const_iterator = std::vector<Entry>::const_iterator;

  Metrics() = default;
  Metrics(std::initializer_list<Entry> entries);

  void set(std::string_view name, double value);  // an existing name keeps its place and gets the new value
  void merge(const Metrics& other);
  [[nodiscard]] Metrics with_prefix(std::string_view prefix) const;  // "rewards" becomes "train_rollouts/rewards"

  [[nodiscard]] std::optional<double> find(std::string_view name) const;
  [[nodiscard]] const_iterator begin() const { return entries_.begin(); }
  [[nodiscard]] const_iterator end() const { return entries_.end(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

// One sample answer. `extra` holds further columns; their names differ from step, time, table, prompt, response, reward.
struct Sample {
  std::string prompt;
  std::string response;
  std::optional<double> reward = 0;  // none: it has no reward
  Json::Object extra{};
};

struct SampleTable {
  std::string name;  // "train_rollouts"
  std::vector<Sample> rows;
};

// How far a piece of work has come. The first report of a title sets where it starts: above 0 in a resumed run.
struct Progress {
  std::string title = "step";
  int64_t done = 0;
  int64_t total = -1;  // -1: unknown
};

// How much each sink had written, by the sink's own name; a checkpoint keeps it.
using SinkPositions = std::map<std::string, int64_t>;

enum class RunOutcome { finished, failed, killed };  // killed: by a signal or its time limit; it can go on

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(int64_t step, const Metrics& metrics) = 0;
  virtual void write_samples(int64_t /*step*/, const SampleTable& /*table*/) {}
  virtual void report(const Progress& /*progress*/) {}
  virtual void flush() {}  // what was written survives a power cut

  // Adds what `resume` will need. Touches no disk.
  virtual void record(SinkPositions& /*positions*/) const {}
  // The run resumes at `step`: what was written after the checkpoint with `positions` is discarded.
  virtual void resume(int64_t /*step*/, const SinkPositions& /*positions*/) {}
  // The run is over, nothing is written any more. May take a while where others have to be told.
  virtual void finish(RunOutcome /*end*/) {}
};

// Hands everything to every sink, on the one rank that writes; elsewhere all calls do nothing. A sink that fails (disk full) does
// not end the run: it warns, the others continue, and it is retried every time. Not thread-safe.
class MetricsLog {
 public:
  using MoreNames = std::function<Metrics(const Metrics&)>;
  // What `more_names` returns is written along with the metrics it is given, in the same line.
  explicit MetricsLog(bool writes, MoreNames more_names = {}) : writes_(writes), more_names_(std::move(more_names)) {}

  // Creates a sink if this rank writes, so that no other rank opens its files: log.add<JsonlSink>(folder).
  template <typename S, typename... Arguments>
  void add(Arguments&&... arguments) {
    if (writes_) sinks_.push_back({.sink = std::make_unique<S>(std::forward<Arguments>(arguments)...)});
  }

  void write(int64_t step, const Metrics& metrics);
  void write_samples(int64_t step, const SampleTable& table);
  void report(const Progress& progress);
  void flush();
  [[nodiscard]] SinkPositions positions();                    // flushed, so that a checkpoint may rely on them
  void resume(int64_t step, const SinkPositions& positions);  // errors are thrown: better before the first step than after it
  void finish(RunOutcome end);

 private:
  enum class Call { write, samples, report, flush, finish };
  struct Guarded {
    std::unique_ptr<Sink> sink;
    uint64_t num_failures = 0;
    std::optional<Call> failing{};  // the call whose failure was logged; its next success is logged too
  };
  void for_each_sink(Call call, const std::function<void(Sink&)>& run);

  bool writes_;
  MoreNames more_names_;
  std::vector<Guarded> sinks_;
};

// Seconds since 1970, with a fraction; sinks take it as a parameter so that tests can choose the time.
using WallClock = std::function<double()>;
[[nodiscard]] double seconds_since_epoch();

}  // namespace kedge
