#include "kedge/net/call_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

constexpr auto kAlone = std::chrono::seconds(1);
constexpr auto kLookForCallers = std::chrono::milliseconds(200);
constexpr int64_t kUsualDelayUs = 2000;

// What two requests must have in common to be run together: their inputs and the shape of a row of each.
std::string shape_key_of(const InferRequest& request) {
  std::vector<std::string> inputs;
  for (const WireTensor& input : request.inputs) {
    std::string key = input.name;
    for (size_t dim = 1; dim < input.shape.size(); ++dim) key += str(" ", input.shape[dim]);
    inputs.push_back(std::move(key));
  }
  std::sort(inputs.begin(), inputs.end());  // clients may send them in any order
  std::string all;
  for (const std::string& input : inputs) all += input + "\n";
  return all;
}

int64_t ns_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

}  // namespace

CallQueue::CallQueue(const QueueOptions& options, const std::vector<ServedModel>& models, std::deque<ModelStats>& stats)
    : options_(options), models_(models), stats_(stats) {
  for (const ServedModel& model : models) {
    const ModelSignature& signature = model.signature;
    const int64_t max_rows =
        options.max_merged_rows > 0 ? std::min(options.max_merged_rows, signature.max_batch_size) : signature.max_batch_size;
    rules_.push_back({.preferred = signature.preferred_batch_sizes,
                      .max_delay_us = static_cast<double>(signature.max_queue_delay_us),
                      .max_rows = max_rows,
                      .merge = options.merge});
  }
  thread_ = std::thread([this] { run(); });
}

CallQueue::~CallQueue() { stop(); }

bool CallQueue::add(Call call) {
  std::string key = shape_key_of(call.request);
  const std::lock_guard lock(mutex_);
  if (stopping_) throw RequestError(503, "the server is shutting down");
  const bool is_kept = models_[call.model].is_kept;
  if (std::count_if(waiting_.begin(), waiting_.end(), [&](const Entry& entry) { return models_[entry.call.model].is_kept == is_kept; }) >=
      options_.max_calls)
    return false;
  const auto now = Clock::now();
  if (num_unanswered_++ > 0) last_company_ = now;
  waiting_.push_back({std::move(call), std::move(key), now});
  changed_.notify_all();
  return true;
}

int64_t CallQueue::size() {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

void CallQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void CallQueue::run() {
  if (options_.on_start) options_.on_start();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::erase_if(waiting_, [&](Entry& entry) { return is_given_up(entry); });
    const BatchPlan next = plan();
    if (next.take.empty()) {
      if (next.wait_us) {
        changed_.wait_for(lock, std::chrono::duration<double, std::micro>(*next.wait_us));
      } else if (!waiting_.empty()) {
        changed_.wait_for(lock, kLookForCallers);  // what they wait for may never happen, and their callers may be gone unnoticed
      } else {
        changed_.wait(lock);
      }
      continue;
    }
    std::vector<Entry> batch;
    for (const size_t index : next.take) batch.push_back(std::move(waiting_[index]));
    for (auto index = next.take.rbegin(); index != next.take.rend(); ++index)
      waiting_.erase(waiting_.begin() + static_cast<int64_t>(*index));
    lock.unlock();
    execute(std::move(batch));
    lock.lock();
  }
  std::deque<Entry> left = std::move(waiting_);
  waiting_.clear();
  lock.unlock();
  for (const Entry& entry : left) entry.call.failed(std::make_exception_ptr(RequestError(503, "the server is shutting down")));
}

// A call without a caller is not run, unless it changes something; one that may never run is rejected. Checks whether the others
// may.
bool CallQueue::is_given_up(Entry& entry) {
  const ServedModel& model = models_[entry.call.model];
  ModelStats& stats = stats_[entry.call.model];
  if (!model.is_kept && entry.call.is_gone && entry.call.is_gone()) {
    ++stats.num_dropped;
    --num_unanswered_;
    return true;
  }
  try {
    entry.may_run = !model.may_run || model.may_run(entry.call.request);
  } catch (const std::exception&) {
    ++stats.num_refused;
    --num_unanswered_;
    entry.call.failed(std::current_exception());
    return true;
  }
  return false;
}

// A caller that has been the only one for a while is not made to wait for others, unless a long wait is configured.
bool CallQueue::waits_for_company(const Entry& entry, Clock::time_point now) const {
  return now - last_company_ < kAlone || models_[entry.call.model].signature.max_queue_delay_us > kUsualDelayUs;
}

BatchPlan CallQueue::plan() {
  const auto now = Clock::now();
  std::vector<Waiting> view;
  view.reserve(waiting_.size());
  for (const Entry& entry : waiting_) {
    const ServedModel& model = models_[entry.call.model];
    view.push_back({.model = static_cast<int64_t>(entry.call.model),
                    .rows = entry.call.rows,
                    .shape_key = entry.shape_key,
                    .age_us = waits_for_company(entry, now) ? static_cast<double>(ns_between(entry.arrival, now)) / 1000
                                                            : std::numeric_limits<double>::infinity(),
                    .may_run = entry.may_run,
                    .alone = model.signature.max_batch_size == 0});
  }
  return plan_batch(view, rules_);
}

void CallQueue::execute(std::vector<Entry> batch) {
  const auto begin = Clock::now();
  ModelStats& stats = stats_[batch.front().call.model];
  int64_t rows = 0;
  for (const Entry& entry : batch) {
    rows += entry.call.rows;
    stats.wait_ns += ns_between(entry.arrival, begin);
  }
  ServedResult result;
  std::exception_ptr error;
  try {
    result = compute(batch);
  } catch (...) {
    error = std::current_exception();
  }
  const int64_t took = ns_between(begin, Clock::now());
  stats.compute_ns += took;
  stats.num_batches += 1;
  stats.num_rows += rows;
  log_debug(stats.name, ": ", rows, rows == 1 ? " row of " : " rows of ", batch.size(),
            batch.size() == 1 ? " call, waited " : " calls, waited ", ns_between(batch.front().arrival, begin) / 1000, " us, ran ",
            took / 1000, " us");
  {
    const std::lock_guard lock(mutex_);  // before they are answered: a caller that sends its next call at once does not wait for itself
    num_unanswered_ -= static_cast<int64_t>(batch.size());
  }
  int64_t at = 0;
  for (const Entry& entry : batch) {
    if (error) {
      ++stats.num_failed;
      entry.call.failed(error);
      continue;
    }
    ++stats.num_done;
    if (batch.size() == 1) return entry.call.done(std::move(result));
    ServedResult part{{}, result.parameters};
    try {
      for (const WireTensor& output : result.outputs) part.outputs.push_back(take_rows(output, at, entry.call.rows));
    } catch (const std::exception&) {  // a model that returned too few rows: an error of this call, not of the server
      entry.call.failed(std::current_exception());
      continue;
    }
    at += entry.call.rows;
    entry.call.done(std::move(part));
  }
}

ServedResult CallQueue::compute(const std::vector<Entry>& batch) const {
  const InferRequest& first = batch.front().call.request;
  const ServedModel& model = models_[batch.front().call.model];
  if (batch.size() == 1) return model.run(first.inputs, first.parameters);
  std::vector<WireTensor> joined;
  for (const WireTensor& input : first.inputs) {
    std::vector<const WireTensor*> parts;
    for (const Entry& entry : batch) parts.push_back(find_tensor(entry.call.request.inputs, input.name));
    joined.push_back(join_rows(parts));
  }
  return model.run(joined, first.parameters);
}

}  // namespace kedge
