#pragma once
// Sends a run's metrics to a tracker, such as MLflow, in the background. The run waits for it only at its end, for a limited time. The
// metrics come from metrics.jsonl, and the run's folder records what the tracker has confirmed, so a tracker that was unreachable catches
// up later. Independent of any particular tracker.
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

// The connection to one tracker. Used from one thread, except abort(). Every call may throw an Error: the tracker is unreachable, or
// rejects the call.
class TrackerLink {
 public:
  virtual ~TrackerLink() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // in messages: "MLflow at http://localhost:5000"

  // Opens the tracker's run, and creates it the first time. `memory` belongs to the link and is on disk after each `save`. Returns the last
  // row that the tracker has, -1 for none; no value if sending a row twice does no harm.
  [[nodiscard]] virtual std::optional<int64_t> connect(Json& memory, const std::function<void()>& save) = 0;
  virtual void send(std::span<const TrackerRow> rows) = 0;
  // The last row that the tracker has stored durably; may be before the last one sent.
  [[nodiscard]] virtual int64_t last_kept() = 0;
  // No more rows follow: waits until all that was sent is stored, and reports how the run ended.
  virtual void finish(RunOutcome end) = 0;
  virtual void disconnect() = 0;    // never throws; connect() may follow
  virtual void abort(bool on) = 0;  // from any thread. true: the current call and all later ones fail soon; false: they work again
};

struct TrackerOptions {
  std::string file_name;                                           // "mlflow.json"
  Path folder;                                                     // of the run
  double wait_s = 30;                                              // how long the end of the run waits for the tracker
  std::chrono::milliseconds first_pause{1000}, last_pause{60000};  // between two attempts to reach the tracker
};

// Not thread-safe.
class Tracker {
 public:
  Tracker(TrackerOptions options, std::unique_ptr<TrackerLink> link);

  // The run's metrics.jsonl is about to be truncated to this size.
  void take_back(int64_t cut);
  // Sends everything in the file; connects first if necessary. After an Error it may be called again.
  void send_all();
  // Asks the tracker what it has stored. True: everything that was sent.
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
  bool resends_ = false;                 // on this connection, sending a row twice does no harm
  TrackerCursor sent_;                   // end of what was sent; state_.held follows when it is confirmed
  std::deque<TrackerCursor> in_flight_;  // ends of the batches between state_.held and sent_
};

// A tracker as a sink of a MetricsLog. Must be added before the sink that writes metrics.jsonl: a resume must reach it before the file is
// truncated.
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

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable news_;
  bool has_news_ = false;  // the file may have grown
  bool is_stopping_ = false, is_done_ = false;
  std::optional<RunOutcome> end_;  // the run is over: send the rest, then stop
};

}  // namespace kedge
