#include "kedge/reward/reward_command.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "kedge/core/child_process.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/utf8.h"
#include "kedge/reward/reward_protocol.h"

namespace kedge {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestReply = size_t{64} << 20U;
constexpr size_t kLongestShown = 300;
constexpr auto kLookAfter = std::chrono::milliseconds(500);  // a process may end and leave its pipes to one it started
constexpr auto kPatience = std::chrono::seconds(1);          // for an idle process to end by itself

// One call of submit().
struct CommandCall {
  Rollouts rollouts;
  std::vector<RowReward> rewards;
  size_t num_missing = 0;
  std::promise<std::vector<RowReward>> promise;
};

struct PendingRow {
  std::shared_ptr<CommandCall> call;
  size_t index = 0;
  int64_t num_deaths = 0;  // of processes that had this row and no other
  bool alone = false;      // in a separate exchange, because a process failed with it and others

  void settle(RowReward reward) const {
    call->rewards[index] = std::move(reward);
    if (--call->num_missing == 0) call->promise.set_value(std::move(call->rewards));
  }
};

struct Worker {
  std::string name;
  std::unique_ptr<ChildProcess> process;  // null: not running
  bool has_answered = false;              // since it was started
  bool errors_open = false;
  std::vector<PendingRow> rows;  // its rows; empty: idle
  RewardExchange exchange;
  Clock::time_point deadline;
  std::string unsent, output, errors;  // bytes on their way
  std::string last_words;              // the last line of its standard error

  [[nodiscard]] bool is_busy() const { return !rows.empty(); }
};

std::string shown(std::string_view line) {
  return str('"', utf8_replace_invalid(line.substr(0, kLongestShown)), line.size() > kLongestShown ? "..." : "", '"');
}

}  // namespace

// Everything but submit() and the destructor happens on the pool's own thread.
class RewardCommand::Pool {
 public:
  explicit Pool(RewardCommandConfig config) : config_(std::move(config)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_ < 0) throw Error(str(config_.name, ": cannot make an event descriptor: ", std::strerror(errno)));
    argv_ = config_.command.size() == 1 ? std::vector<std::string>{"/bin/sh", "-c", config_.command[0]} : config_.command;
    workers_.resize(static_cast<size_t>(config_.workers));
    for (size_t i = 0; i < workers_.size(); ++i) workers_[i].name = str(config_.name, ", worker ", i + 1);
    thread_ = std::thread([this] { run(); });
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake();
    thread_.join();
    ::close(wake_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::future<std::vector<RowReward>> submit(Rollouts rollouts) {
    auto call = std::make_shared<CommandCall>();
    call->num_missing = rollouts.size();
    call->rewards.resize(rollouts.size());
    call->rollouts = std::move(rollouts);
    auto future = call->promise.get_future();
    if (call->num_missing == 0) {
      call->promise.set_value({});
      return future;
    }
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = 0; i < call->rewards.size(); ++i) arrived_.push_back({.call = call, .index = i});
    }
    wake();
    return future;
  }

 private:
  void wake() const {
    const uint64_t one = 1;
    if (::write(wake_, &one, sizeof one) < 0 && errno != EAGAIN)
      log_error(config_.name, ": cannot wake its thread: ", std::strerror(errno));
  }

  void run() {
    sigset_t all;
    ::sigfillset(&all);  // signals are handled elsewhere; SIGPIPE from a dead process must not end this one
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (Worker& worker : workers_) start(worker);
    while (take_arrived()) {
      for (Worker& worker : workers_)
        while (!worker.is_busy() && !waiting_.empty()) hand_out(worker);
      wait();
      for (Worker& worker : workers_) look_at(worker);
    }
    close_down();
  }

  bool take_arrived() {
    const std::lock_guard lock(mutex_);
    for (PendingRow& row : arrived_) waiting_.push_back(std::move(row));
    arrived_.clear();
    return !closing_;
  }

  // False if it cannot be started; `last_words` has the reason.
  bool start(Worker& worker) {
    worker.has_answered = false;
    worker.errors_open = true;
    worker.output.clear(), worker.errors.clear(), worker.unsent.clear(), worker.last_words.clear();
    try {
      worker.process = std::make_unique<ChildProcess>(argv_);
      return true;
    } catch (const Error& error) {
      worker.last_words = error.what();
      log_error(worker.name, ": ", error.what());
      return false;
    }
  }

  void hand_out(Worker& worker) {
    do {
      worker.rows.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    } while (static_cast<int64_t>(worker.rows.size()) < config_.batch && !waiting_.empty() && !worker.rows.back().alone &&
             !waiting_.front().alone);
    if (worker.process != nullptr && worker.process->ended()) worker.process.reset();
    if (worker.process == nullptr && !start(worker)) return lost(worker, "could not be started");
    Rollouts rollouts;
    for (const PendingRow& row : worker.rows) rollouts.push_back(row.call->rollouts[row.index]);
    worker.exchange = {.id = next_id_++, .num_rows = rollouts.size(), .batched = config_.batch > 1};
    worker.unsent = reward_request(worker.exchange, rollouts);
    const double allowed_s = config_.timeout_s * static_cast<double>(rollouts.size()) + (worker.has_answered ? 0 : config_.start_timeout_s);
    worker.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(allowed_s));
  }

  // Until something can be read or written, a time is over, or this thread is woken.
  void wait() {
    std::vector<pollfd> watched{{.fd = wake_, .events = POLLIN, .revents = 0}};
    auto until = Clock::time_point::max();
    for (Worker& worker : workers_) {
      if (worker.process == nullptr) continue;
      watched.push_back({.fd = worker.process->output(), .events = POLLIN, .revents = 0});
      if (worker.errors_open) watched.push_back({.fd = worker.process->errors(), .events = POLLIN, .revents = 0});
      if (!worker.unsent.empty()) watched.push_back({.fd = worker.process->input(), .events = POLLOUT, .revents = 0});
      if (worker.is_busy()) until = std::min({until, worker.deadline, Clock::now() + kLookAfter});
    }
    int timeout_ms = -1;
    if (until != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      timeout_ms = static_cast<int>(std::max<int64_t>(0, left));
    }
    ::poll(watched.data(), watched.size(), timeout_ms);
    uint64_t count = 0;
    if (::read(wake_, &count, sizeof count) < 0 && errno != EAGAIN) log_error(config_.name, ": ", std::strerror(errno));
  }

  void look_at(Worker& worker) {
    if (worker.process == nullptr) return;
    send(worker);
    const bool ended = worker.process->ended().has_value();  // checked first: all its output is in the pipes by now
    const bool output_open = read_available(worker.process->output(), worker.output, kLongestReply);
    worker.errors_open = read_available(worker.process->errors(), worker.errors, kLongestReply);
    log_errors(worker, ended || !worker.errors_open);
    for (std::string line; worker.is_busy() && take_line(worker.output, line);) answer(worker, line);
    if (worker.process == nullptr) return;
    if (ended || !output_open) return died(worker);
    if (worker.output.size() > kLongestReply) return refuse(worker, worker.output, "it is longer than a reply may be");
    if (worker.is_busy() && Clock::now() >= worker.deadline) time_is_over(worker);
  }

  static void send(Worker& worker) {
    while (!worker.unsent.empty()) {
      const ssize_t size = ::write(worker.process->input(), worker.unsent.data(), worker.unsent.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) {
        if (errno != EAGAIN) worker.unsent.clear();  // it died, which is seen elsewhere
        return;
      }
      worker.unsent.erase(0, static_cast<size_t>(size));
    }
  }

  static void log_errors(Worker& worker, bool all) {
    if ((all || worker.errors.size() > kLongestReply) && !worker.errors.empty() && !worker.errors.ends_with('\n')) worker.errors += '\n';
    for (std::string line; take_line(worker.errors, line);) {
      log_info(worker.name, ": ", utf8_replace_invalid(line));
      if (!line.empty()) worker.last_words = line;
    }
  }

  void answer(Worker& worker, const std::string& line) {
    std::vector<RowReward> rewards;
    try {
      rewards = parse_reward_reply(line, worker.exchange);
    } catch (const UsageError& error) {
      return refuse(worker, line, error.what());
    }
    worker.has_answered = true;
    num_stillborn_ = 0;
    for (size_t i = 0; i < rewards.size(); ++i) worker.rows[i].settle(std::move(rewards[i]));
    worker.rows.clear();
  }

  // Its later lines could be mistaken for replies to the next request.
  void refuse(Worker& worker, std::string_view line, std::string_view why) {
    fail_rows(worker, str(worker.name, " wrote ", shown(line), ", which is not a reply: ", why,
                          "; only replies may go to standard output, anything else to standard error"));
    worker.process.reset();
  }

  static void fail_rows(Worker& worker, const std::string& error) {
    log_warn(error);
    for (const PendingRow& row : worker.rows) row.settle({.error = error});
    worker.rows.clear();
  }

  void died(Worker& worker) {
    const auto until = Clock::now() + kPatience;  // it closed its output, most likely because it is ending
    while (!worker.process->ended() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string how = worker.process->ended().value_or("closed its output");
    worker.process.reset();
    if (worker.is_busy()) return lost(worker, how + " before it replied");
    log_warn(worker.name, " ", how, " while it was idle", said(worker), "; it is restarted when needed");
  }

  static std::string said(const Worker& worker) {
    return worker.last_words.empty() ? "" : str("; its last output: ", shown(worker.last_words));
  }

  // Its process is gone; other ones get its rows.
  void lost(Worker& worker, const std::string& how) {
    const std::string error = str(worker.name, " ", how, said(worker));
    log_warn(error);
    if (!worker.has_answered) ++num_stillborn_;
    std::vector<PendingRow> rows = std::exchange(worker.rows, {});
    if (rows.size() == 1 && ++rows[0].num_deaths > config_.retries) {
      rows[0].settle({.error = str(error, "; tried ", rows[0].num_deaths, rows[0].num_deaths == 1 ? " time" : " times")});
    } else {
      try_alone(std::move(rows));
    }
    if (num_stillborn_ > most_stillborn()) give_up(error);
  }

  // Only one of them is at fault.
  void try_alone(std::vector<PendingRow> rows) {
    for (; !rows.empty(); rows.pop_back()) {
      rows.back().alone = true;
      waiting_.push_front(std::move(rows.back()));
    }
  }

  [[nodiscard]] int64_t most_stillborn() const { return config_.workers + config_.retries + 1; }

  // The command does not work at all. Later calls try a single process, unless one replies: each start may take long, and a
  // program that fails as it starts would be started for every row of the run.
  void give_up(const std::string& error) {
    for (const PendingRow& row : waiting_) row.settle({.error = str(error, "; ", num_stillborn_, " processes in a row gave no reply")});
    waiting_.clear();
  }

  void time_is_over(Worker& worker) {
    if (worker.rows.size() > 1) {
      log_warn(worker.name, " gave no reply to ", worker.rows.size(), " rows in time and is killed; they are retried one by one");
      try_alone(std::exchange(worker.rows, {}));
    } else {
      const PendingRow& row = worker.rows[0];
      fail_rows(worker, str(worker.name, " gave no reply for prompt ", row.call->rollouts[row.index]->prompt_id, " within ",
                            config_.timeout_s, " s and was killed", said(worker)));
    }
    worker.process.reset();
  }

  void close_down() {
    const RowReward closed{.error = str(config_.name, ": closed before it replied")};
    for (const PendingRow& row : waiting_) row.settle(closed);
    for (Worker& worker : workers_) {
      for (const PendingRow& row : worker.rows) row.settle(closed);
      if (worker.is_busy()) worker.process.reset();
      if (worker.process != nullptr) worker.process->close_input();
    }
    const auto runs = [](Worker& worker) { return worker.process != nullptr && !worker.process->ended(); };
    for (const auto until = Clock::now() + kPatience; Clock::now() < until && std::any_of(workers_.begin(), workers_.end(), runs);)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (Worker& worker : workers_) {
      if (worker.process == nullptr) continue;
      read_available(worker.process->errors(), worker.errors, kLongestReply);
      log_errors(worker, true);
    }
    workers_.clear();  // kills what still runs
  }

  RewardCommandConfig config_;
  std::vector<std::string> argv_;
  std::vector<Worker> workers_;
  std::deque<PendingRow> waiting_;
  int64_t next_id_ = 1;
  int64_t num_stillborn_ = 0;  // processes that ended without a single reply, since the last reply

  int wake_ = -1;
  std::mutex mutex_;  // of the two below
  std::deque<PendingRow> arrived_;
  bool closing_ = false;
  std::thread thread_;
};

RewardCommand::RewardCommand(RewardCommandConfig config) : pool_(std::make_unique<Pool>(std::move(config))) {}
RewardCommand::~RewardCommand() = default;

std::future<std::vector<RowReward>> RewardCommand::submit(Rollouts rollouts) { return pool_->submit(std::move(rollouts)); }

}  // namespace kedge
