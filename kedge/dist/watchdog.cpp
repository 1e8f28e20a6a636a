// The thread; how a job starts it is in watchdog_start.cpp. Lines on the wire:
//   hello TOKEN RANK    to rank 0, which answers hello
//   beat NUMBER CALL    every second, both ways
//   bye CODE WHY        the sender ends; CODE 0: as all ranks do
//   end CODE WHY        from rank 0: the job ends
#include "kedge/dist/watchdog.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kGuestTime{10};  // for a connection to say which rank it is
constexpr size_t kMaxGuests = 64;
constexpr size_t kMaxWhyBytes = 2000;

milliseconds elapsed_since(Clock::time_point start) { return std::chrono::floor<milliseconds>(Clock::now() - start); }

// Signals are for the threads that were there before.
template <typename Run>
std::thread thread_without_signals(Run run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(run);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  const size_t end = std::min(text.find(' '), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

template <typename Number>
Number read_number(std::string_view text, Number otherwise) {
  Number number = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kMaxWhyBytes));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

LineSocket join_watchdog(const std::vector<std::string>& addresses, int port, std::string_view token, int rank) {
  std::string failures;
  for (const std::string& address : addresses) {
    try {
      LineSocket socket = connect_line(address, port, std::chrono::seconds(2));
      socket.send(str("hello ", token, " ", rank));
      if (socket.wait_for_line(std::chrono::seconds(5)) == "hello") return socket;
      failures += str("; ", address, " port ", port, ": another program answers, or none");
    } catch (const Error& error) {
      failures += str("; ", error.what());
    }
  }
  throw Error(failures.empty() ? "rank 0 has no address" : failures.substr(2));
}

Watchdog::Watchdog(std::vector<std::string> names, LineListener listener, std::string token, WatchdogOptions options)
    : options_(std::move(options)),
      heartbeats_(names, options_.limits),
      num_ranks_(static_cast<int>(names.size())),
      listener_(std::move(listener)),
      token_(std::move(token)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  heartbeats_.watch(0);  // itself: whether it keeps the others waiting
  thread_ = thread_without_signals([this] { run(); });
}

Watchdog::Watchdog(std::vector<std::string> names, LineSocket rank_0, WatchdogOptions options)
    : options_(std::move(options)),
      heartbeats_(names, options_.limits),
      num_ranks_(static_cast<int>(names.size())),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  peers_.push_back({std::move(rank_0), 0, Clock::now()});
  heartbeats_.watch(0);
  thread_ = thread_without_signals([this] { run(); });
}

Watchdog::~Watchdog() { say_goodbye(kExitOk, ""); }

void Watchdog::say_goodbye(int exit_code, std::string_view why) {
  if (!thread_.joinable()) return;
  goodbye_ = str("bye ", exit_code, " ", one_line(why));
  is_leaving_ = true;
  ::eventfd_write(wake_.number(), 1);
  thread_.join();
}

void Watchdog::set_call(std::string_view name) {
  const std::lock_guard lock(mutex_);
  ++call_.number;
  call_.name = name;
}

WaitingCall Watchdog::current_call() {
  const std::lock_guard lock(mutex_);
  return call_;
}

void Watchdog::run() {
  tick(milliseconds(0));
  Clock::time_point last = Clock::now();
  while (!failure_) {
    wait_for_news(options_.limits.period - elapsed_since(last));
    if (is_leaving_) return leave();
    read_news();
    const milliseconds time = elapsed_since(last);
    if (time < options_.limits.period) continue;
    last = Clock::now();
    tick(time);
  }
  end_job();
}

void Watchdog::wait_for_news(milliseconds limit) {
  std::vector<pollfd> waits;
  for (const Peer& peer : peers_)
    waits.push_back({peer.socket.fd(), static_cast<int16_t>(peer.socket.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  waits.push_back({wake_.number(), POLLIN, 0});
  if (listener_) waits.push_back({listener_->fd(), POLLIN, 0});  // poll ignores one that is closed
  const int num_ready = ::poll(waits.data(), waits.size(), static_cast<int>(std::max<int64_t>(limit.count(), 0)));
  for (size_t i = 0; i < peers_.size(); ++i) peers_[i].has_news = num_ready <= 0 || waits[i].revents != 0;
}

void Watchdog::read_news() {
  for (Peer& peer : peers_) {
    if (!peer.has_news) continue;
    peer.socket.flush();
    for (const std::string& line : peer.socket.receive()) take(peer, line);
    if (!peer.socket.is_open() && peer.rank >= 0)
      add_failure({kExitWorld, str(heartbeats_.name(peer.rank), " was killed, crashed or ended without notice"), true});
  }
  drop_connections();
  while (listener_) {
    std::optional<LineSocket> guest = listener_->accept();
    if (!guest) break;
    if (peers_.size() < static_cast<size_t>(num_ranks_) + kMaxGuests) peers_.push_back({std::move(*guest), -1, Clock::now()});
  }
}

void Watchdog::tick(milliseconds time) {
  const WaitingCall call = current_call();
  for (Peer& peer : peers_)
    if (peer.rank >= 0 && !peer.socket.has_unsent()) peer.socket.send(str("beat ", call.number, " ", call.name));
  if (listener_) heartbeats_.heard(0, call);  // of itself
  heartbeats_.pass(time);
  for (const int rank : heartbeats_.silent_ranks())
    add_failure({kExitWorld,
                 str(heartbeats_.name(rank), " has not answered for ", static_cast<double>(options_.limits.silence.count()) / 1000,
                     " s: it is stopped, or its machine cannot be reached"),
                 false});
  if (!listener_) return;
  if (const std::string warning = heartbeats_.stall_warning(); !warning.empty()) log_warn(warning);
}

void Watchdog::take(Peer& peer, std::string_view line) {
  const auto [word, rest] = split_word(line);
  const auto [number, text] = split_word(rest);
  if (peer.rank < 0) {
    if (word == "hello") welcome(peer, rest);
    if (peer.rank < 0) peer.socket.close();
  } else if (word == "beat") {
    heartbeats_.heard(peer.rank, {read_number<uint64_t>(number, 0), std::string(text)});
  } else if (word == "end") {
    add_failure({read_number(number, kExitWorld), std::string(text), false});
    peer.rank = -1;
  } else if (word == "bye") {
    const int exit_code = read_number(number, kExitWorld);
    if (exit_code != kExitOk) add_failure({exit_code, str(heartbeats_.name(peer.rank), " ended: ", text), true});
    heartbeats_.forget(peer.rank);
    peer.rank = -1;
    peer.socket.close();
  }
}

void Watchdog::welcome(Peer& peer, std::string_view words) {
  const auto [token, number] = split_word(words);
  const int rank = read_number(number, -1);
  const bool is_new = std::none_of(peers_.begin(), peers_.end(), [&](const Peer& other) { return other.rank == rank; });
  if (token != token_ || rank < 1 || rank >= num_ranks_ || !is_new) return;
  peer.rank = rank;
  peer.socket.send("hello");
  heartbeats_.watch(rank);
  if (++num_joined_ == num_ranks_ - 1) listener_->close();
}

// Those that are over, and those that do not say who they are.
void Watchdog::drop_connections() {
  std::erase_if(peers_,
                [](const Peer& peer) { return !peer.socket.is_open() || (peer.rank < 0 && elapsed_since(peer.since) > kGuestTime); });
}

void Watchdog::add_failure(Failure failure) {
  if (failure_)
    failure_->text += str("; ", failure.text);
  else
    failure_ = std::move(failure);
}

void Watchdog::tell_ranks(const std::string& line) {
  for (Peer& peer : peers_)
    if (peer.rank >= 0) peer.socket.send(line);
}

void Watchdog::end_job() {
  if (failure_->has_ended && leaves_within(options_.courtesy)) return leave();
  if (listener_) tell_ranks(str("end ", failure_->exit_code, " ", one_line(failure_->text)));
  options_.report(failure_->text);
  // The main thread may end the process by itself, with its own error.
  if (leaves_within(options_.grace)) return leave();
  options_.end(failure_->exit_code);
}

void Watchdog::leave() {
  tell_ranks(goodbye_);
  peers_.clear();
}

bool Watchdog::leaves_within(milliseconds limit) const {
  pollfd wait{wake_.number(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(limit.count())) > 0 && is_leaving_;
}

}  // namespace kedge
