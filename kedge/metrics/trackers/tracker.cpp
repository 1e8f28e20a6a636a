#include "kedge/metrics/trackers/tracker.h"

#include <signal.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/jsonl.h"

namespace kedge {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr int64_t kNumbersOfABatch = 1000;
constexpr size_t kMostInFlight = 64;
constexpr Milliseconds kBetweenBatches{500};  // so that the metrics of several steps are sent together
constexpr Milliseconds kNextLook{1000};       // for missing confirmations

bool is_empty_file(const Path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error || size == 0;
}

}  // namespace

Tracker::Tracker(TrackerOptions options, std::unique_ptr<TrackerLink> link) : options_(std::move(options)), link_(std::move(link)) {
  make_folder(state_file().parent_path());
  if (!is_file(state_file())) return;
  state_ = TrackerState::from_json(Json::parse(read_text(state_file()), state_file().string()), state_file().string());
  if (std::max(state_.held.position, state_.sent_to) > 0 && is_empty_file(metrics_file())) begin_anew();
}

// The folder has another run now: what the tracker has belongs to one whose metrics were moved away.
void Tracker::begin_anew() {
  int64_t number = 1;
  while (std::filesystem::exists(str(state_file().string(), ".before-", number))) ++number;
  std::filesystem::rename(state_file(), str(state_file().string(), ".before-", number));
  state_ = {};
  log_info(link_->name(), ": metrics.jsonl starts from scratch, so a new run is created there");
}

void Tracker::take_back(int64_t cut) {
  disconnect();
  state_.take_back(metrics_file(), cut);
  save();
}

void Tracker::connect() {
  in_flight_.clear();
  const std::optional<int64_t> last_kept = link_->connect(state_.link, [this] { save(); });
  resends_ = !last_kept.has_value();
  if (last_kept) {
    state_.settle(metrics_file(), *last_kept);
    save();
  }
  sent_ = state_.held;
  is_connected_ = true;
}

void Tracker::send_all() {
  if (!is_connected_) connect();
  while (true) {
    TrackerCursor next = sent_;
    RowLimits limits{.max_numbers = kNumbersOfABatch};
    if (state_.unsure) limits.end = state_.unsure->from;
    const std::vector<TrackerRow> rows = read_rows(metrics_file(), next, limits);
    if (next.position == sent_.position) {
      if (!state_.unsure || !settle()) return;
      send_unsure();
      continue;
    }
    state_.sent_to = next.position;
    save();  // before sending: after a crash it is unknown whether the rows arrived
    if (!rows.empty()) link_->send(rows);
    sent_ = next;
    if (in_flight_.size() >= kMostInFlight) in_flight_.pop_back();
    in_flight_.push_back(std::move(next));
    settle();
  }
}

// After this they have arrived, whether they had before or not.
void Tracker::send_unsure() {
  if (resends_) link_->send(state_.unsure->rows);
  state_.settle_unsure();
  sent_ = state_.held;
  save();
}

bool Tracker::settle() {
  if (in_flight_.empty()) return true;
  const int64_t first_missing = std::max(link_->last_kept() + 1, state_.held.next_row);
  bool has_changed = false;
  for (; !in_flight_.empty() && in_flight_.front().next_row <= first_missing; in_flight_.pop_front()) {
    state_.held = std::move(in_flight_.front());
    has_changed = true;
  }
  if (has_changed) save();
  return in_flight_.empty();
}

void Tracker::finish(RunOutcome end) {
  if (!is_connected_) connect();
  link_->finish(end);
  settle();
}

void Tracker::disconnect() {
  if (is_connected_) link_->disconnect();
  is_connected_ = false;
}

int64_t Tracker::num_waiting() const { return count_lines(metrics_file(), state_.held.position); }

void Tracker::save() const { write_atomic(state_file(), state_.to_json().dump(1) + "\n"); }

TrackerSink::TrackerSink(std::unique_ptr<Tracker> tracker) : tracker_(std::move(tracker)) {}

TrackerSink::~TrackerSink() {
  try {
    finish(std::uncaught_exceptions() > 0 ? RunOutcome::failed : RunOutcome::finished);
  } catch (const std::exception& error) {
    log_warn(tracker_->link().name(), ": ", error.what());
  }
}

void TrackerSink::write(int64_t /*step*/, const Metrics& /*metrics*/) { start(); }

void TrackerSink::report(const Progress& /*progress*/) { start(); }

void TrackerSink::resume(int64_t step, const SinkPositions& positions) {
  stop();
  tracker_->take_back(resume_offset(tracker_->metrics_file(), step, positions));
}

void TrackerSink::finish(RunOutcome end) {
  if (std::exchange(is_finished_, true)) return;
  if (!thread_.joinable() && tracker_->num_waiting() == 0) return;  // the run ended before it wrote anything
  start();
  {
    std::unique_lock lock(mutex_);
    end_ = end;
    news_.notify_all();
    news_.wait_for(lock, std::chrono::duration<double>(tracker_->options().wait_s), [&] { return is_done_; });
  }
  stop();
  warn_of_rest();
}

void TrackerSink::warn_of_rest() const {
  const int64_t num_lines = tracker_->num_waiting();
  const std::string send = str("kedge track ", tracker_->options().folder.string());
  if (num_lines > 0) {
    log_warn(tracker_->link().name(), ": has not confirmed ", num_lines, num_lines == 1 ? " line" : " lines",
             " of metrics.jsonl. They are sent when the run is started again, or by: ", send);
  } else if (!is_done_) {
    log_warn(tracker_->link().name(), ": has every number, but was not told that the run ended. This tells it: ", send);
  }
}

void TrackerSink::start() {
  const std::lock_guard lock(mutex_);
  has_news_ = true;
  news_.notify_all();
  if (thread_.joinable()) return;
  is_stopping_ = false;
  tracker_->link().abort(false);
  thread_ = std::thread([this] { run(); });
}

void TrackerSink::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    news_.notify_all();
    if (!is_done_) tracker_->link().abort(true);
  }
  thread_.join();
}

bool TrackerSink::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return is_stopping_;
}

void TrackerSink::pause(Milliseconds time) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, end_ ? std::min(time, kNextLook) : time, [&] { return is_stopping_; });
}

// Logs once that the tracker is unreachable, and once that it has caught up.
void TrackerSink::run() {
  sigset_t all;
  ::sigfillset(&all);  // signals are handled elsewhere
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const std::string name = tracker_->link().name();
  Milliseconds next_pause = tracker_->options().first_pause;
  bool is_away = false, all_kept = false;
  while (!is_stopping()) {
    std::optional<RunOutcome> end;
    {
      std::unique_lock lock(mutex_);
      const auto is_awake = [&] { return has_news_ || is_stopping_ || end_.has_value(); };
      if (all_kept) {
        news_.wait(lock, is_awake);
      } else {
        news_.wait_for(lock, kNextLook, is_awake);
      }
      if (is_stopping_) break;
      has_news_ = false;
      end = end_;
    }
    try {
      tracker_->send_all();
      if (is_away) log_info(name, ": is reachable again and has caught up");
      is_away = false;
      next_pause = tracker_->options().first_pause;
      if (end) tracker_->finish(*end);
      all_kept = tracker_->settle();
      if (end) {
        const std::lock_guard lock(mutex_);
        is_done_ = true;
        news_.notify_all();
        break;
      }
      pause(kBetweenBatches);
    } catch (const std::exception& error) {
      tracker_->disconnect();
      all_kept = false;
      if (is_stopping()) break;
      if (!is_away) log_warn(name, ": ", error.what(), ". The run continues; missing lines are sent later");
      is_away = true;
      pause(next_pause);
      next_pause = std::min(next_pause * 2, tracker_->options().last_pause);
      const std::lock_guard lock(mutex_);
      has_news_ = true;
    }
  }
  tracker_->disconnect();
}

}  // namespace kedge
