#include "kedge/net/server_watch.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/local_token.h"
#include "kedge/net/own_host.h"

namespace kedge {
namespace {

int64_t seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); }

}  // namespace

ServerWatch::ServerWatch(WatchOptions options, std::function<void()> on_gone)
    : options_(std::move(options)), on_gone_(std::move(on_gone)), down_since_(Clock::now()), connection_(options_.host, options_.port) {
  thread_ = std::thread([this] { run(); });
}

ServerWatch::~ServerWatch() {
  stop();
  thread_.join();
}

std::string ServerWatch::name() const { return str(options_.label, " ", options_.host, ":", options_.port); }

void ServerWatch::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  connection_.abort();
  changed_.notify_all();
}

void ServerWatch::add_interest(int64_t change) {
  const std::lock_guard lock(mutex_);
  num_interested_ += change;
  changed_.notify_all();
}

void ServerWatch::suspect(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_up_) down_since_ = Clock::now();
  is_up_ = false;
  asks_now_ = asks_anew_ = true;
  why_ = why;
  changed_.notify_all();
}

bool ServerWatch::is_up() {
  const std::lock_guard lock(mutex_);
  return is_up_;
}

std::string ServerWatch::problem() {
  const std::lock_guard lock(mutex_);
  return why_;
}

void ServerWatch::check_accepted() {
  const std::lock_guard lock(mutex_);
  refuse_wrong_token();
}

void ServerWatch::refuse_wrong_token() const {
  check(!is_refused_, "the ", name(), options_.token ? " requires another token" : " requires a token");
}

void ServerWatch::wait_until_up() {
  std::unique_lock lock(mutex_);
  if (is_up_) return;
  const auto begin = Clock::now();
  const auto limit = was_up_ ? options_.return_limit : options_.start_limit;
  if (!was_up_ && !is_told_) down_since_ = begin;
  asks_now_ = true;
  changed_.notify_all();
  const auto is_decided = [&] { return is_up_ || stopping_ || is_refused_; };
  for (auto now = begin; now < begin + limit; now = Clock::now()) {
    if (changed_.wait_until(lock, std::min(now + kStopPeriod, begin + limit), is_decided)) break;
    // One that is only suspected, because a call was lost, may still be running.
    if (is_away_) check_stop(options_.stop, str("the ", name(), " (", why_, ")"));
  }
  if (is_up_) return;
  refuse_wrong_token();
  if (stopping_) throw Error(str("the call to the ", name(), " was cancelled"));
  throw Error(str("the ", name(), was_up_ ? " did not come back within " : " did not become ready within ", seconds(limit), " s (", why_,
                  ")", options_.keys.empty() ? "" : "; its address is set by " + options_.keys));
}

void ServerWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (num_interested_ == 0) {
      changed_.wait(lock, [&] { return stopping_ || num_interested_ > 0; });
      continue;
    }
    asks_now_ = false;
    const bool anew = std::exchange(asks_anew_, false);
    lock.unlock();
    if (anew) connection_.close();  // a server that is stopping may still reply here, and accept no new connections
    const Health health = ask();
    lock.lock();
    if (stopping_) return;
    note(health);
    if (health.is_lost && was_up_) {
      // Pending calls to a machine that vanished would wait forever.
      lock.unlock();
      on_gone_();
      lock.lock();
    }
    // An unreachable one is polled every second, so that it is noticed soon when it is back.
    const auto pause = is_up_ ? options_.period : std::min(options_.period, std::chrono::milliseconds(1000));
    changed_.wait_for(lock, pause, [&] { return stopping_ || asks_now_; });
    if (asks_now_ && !is_up_)
      changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return stopping_; });  // a refused call comes back at once
  }
}

ServerWatch::Health ServerWatch::ask() {
  // Ready, not only alive: a server that is starting or stopping accepts no calls.
  HttpRequest request{"GET", "/v2/health/ready", {}, ""};
  if (options_.token) request.headers.emplace_back("Authorization", authorization_of(*options_.token));
  if (options_.token && is_loopback(options_.host) && !is_port_ours(options_.port))
    return {.is_lost = true, .why = "another user listens on its port; the token is not sent"};
  const HttpTimes times{.connect = options_.patience, .answer = options_.patience};
  const bool was_open = connection_.is_open();
  try {
    const HttpResponse response = connection_.send(request, times);
    if (response.status == 200) return {.is_up = true};
    if (response.status == 401) return {.wants_token = true, .why = "it requires another token"};
    return {.why = str("it answers, but is not ready: HTTP ", response.status)};
  } catch (const ConnectionError& error) {
    if (was_open) return ask();  // it may have closed a connection that was idle for long
    return {.is_lost = true, .why = error.what()};
  }
}

void ServerWatch::note(const Health& health) {
  const auto now = Clock::now();
  is_refused_ = health.wants_token;
  if (is_refused_) changed_.notify_all();
  if (health.is_up) {
    if (is_told_) log_info("the ", name(), was_up_ ? " is back after " : " is ready after ", seconds(now - down_since_), " s");
    is_up_ = was_up_ = true;
    is_told_ = is_away_ = false;
    changed_.notify_all();
    return;
  }
  why_ = health.why;
  if (is_up_ || !is_told_ || now - last_told_ >= options_.tell_every) {
    if (is_up_) down_since_ = now;
    log_warn("the ", name(), " is unreachable (", why_, "); ",
             options_.meanwhile.empty() ? str("waited ", seconds(now - down_since_), " s, limit ",
                                              seconds(was_up_ ? options_.return_limit : options_.start_limit), " s")
                                        : options_.meanwhile);
    is_told_ = true;
    last_told_ = now;
  }
  is_up_ = false;
  is_away_ = true;
}

}  // namespace kedge
