#pragma once
// Sends a run's numbers to a tracker, such as MLflow, in the background. The run never waits for it but at its end, for a limited time:
// what is sent comes from metrics.jsonl, and how far the tracker has confirmed it is kept in the run's folder, so that a tracker that is
// away catches up later. Knows no particular tracker.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"
#include "kedge/metrics/trackers/tracker_state.h"

namespace kedge {

// The way to one tracker. Used from one thread, but for abort(). Every call may throw an Error: the tracker is away, or refuses.
class TrackerLink {
 public:
  virtual ~TrackerLink() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // for people: "MLflow at http://localhost:5000"

  // Opens the tracker's run, makes it the first time. `memory` is kept for the link, on disk after each `save`. Returns the last row that
  // the tracker holds, -1 for none; nothing where it takes the same row twice without harm, so that nobody has to know.
  [[nodiscard]] virtual std::optional<int64_t> connect(Json& memory, const std::function<void()>& save) = 0;
  virtual void send(std::span<const TrackerRow> rows) = 0;
  // The last row that is with the tracker for good: a power cut does not take it back. May be behind what was sent.
  [[nodiscard]] virtual int64_t last_kept() = 0;
  // Nothing more comes: waits until all that was sent is kept, and tells how the run ended.
  virtual void finish(RunOutcome end) = 0;
  virtual void disconnect() = 0;    // never throws; connect() may follow
  virtual void abort(bool on) = 0;  // from any thread. true: the call under way and all later ones fail soon; false: no more
};

struct TrackerOptions {
  std::string file_name;                                           // "mlflow.json"
  Path folder;                                                     // of the run
  double wait_s = 30;                                              // for the tracker at the end of the run
  std::chrono::milliseconds first_pause{1000}, last_pause{60000};  // between two tries of a tracker that is away
};

// Not thread-safe.
class Tracker {
 public:
  Tracker(TrackerOptions options, std::unique_ptr<TrackerLink> link);

  // The run's metrics.jsonl, not yet cut, will go on at this byte.
  void take_back(int64_t cut);
  // Sends all that is in the file; connects first where that is needed. After an Error it may be called again.
  void send_all();
  // Asks the tracker what it has confirmed. True: all that was sent.
  bool settle();
  void finish(RunOutcome end);
  void disconnect();

  [[nodiscard]] int64_t num_waiting() const;  // lines that are not confirmed
  [[nodiscard]] TrackerLink& link() const { return *link_; }
  [[nodiscard]] const TrackerOptions& options() const { return options_; }
  [[nodiscard]] Path metrics_file() const { return options_.folder / "metrics.jsonl"; }
  [[nodiscard]] Path state_file() const { return options_.folder / "trackers" / options_.file_name; }

 private:
  void begin_anew();
  void connect();
  void send_unsure();
  void save() const;

  TrackerOptions options_;
  std::unique_ptr<TrackerLink> link_;
  TrackerState state_;
  bool is_connected_ = false;
  bool resends_ = false;                 // of this connection: the tracker takes a row twice without harm
  TrackerCursor sent_;                   // handed over; state_.held follows as it is confirmed
  std::deque<TrackerCursor> in_flight_;  // places on the way from there to here
};

// A tracker as a sink of a MetricsLog. Must be added before the sink that writes metrics.jsonl: it has to see the file before that is cut.
class TrackerSink final : public Sink {
 public:
  explicit TrackerSink(std::unique_ptr<Tracker> tracker);
  ~TrackerSink() override;
  TrackerSink(const TrackerSink&) = delete;
  TrackerSink& operator=(const TrackerSink&) = delete;

  void write(int64_t step, const Metrics& metrics) override;
  void report(const Progress& progress) override;
  void resume(int64_t step, const SinkPositions& positions) override;
  void finish(RunOutcome end) override;

 private:
  void start();
  void stop();
  void run();
  void pause(std::chrono::milliseconds time);
  void warn_of_rest() const;
  [[nodiscard]] bool is_stopping() const;

  std::unique_ptr<Tracker> tracker_;
  bool is_finished_ = false;
  std::thread thread_;  // not running between a resume and the first call after it

  mutable std::mutex mutex_;  // of the rest
  std::condition_variable news_;
  bool has_news_ = false;  // the file may have grown
  bool is_stopping_ = false, is_done_ = false;
  std::optional<RunOutcome> end_;  // the run is over: send the rest, then leave
};

}  // namespace kedge
