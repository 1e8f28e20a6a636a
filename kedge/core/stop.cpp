#include "kedge/core/stop.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "kedge/core/error.h"
#include "kedge/core/numbers.h"

namespace kedge {
namespace {

constexpr std::array<int, 4> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

// A handler can reach nothing but globals. 0: none received yet.
std::atomic<int> g_received = 0;
std::array<struct sigaction, kSignals.size()> g_old_actions;
struct sigaction g_old_pipe_action;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");

void on_signal(int signal) {
  int none = 0;
  if (!g_received.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
}

}  // namespace

StopSignals::StopSignals() {
  g_received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &g_old_actions[i]);
    const bool is_nohup = kSignals[i] == SIGHUP && g_old_actions[i].sa_handler == SIG_IGN;  // the user wants it to outlive the terminal
    if (!is_nohup) ::sigaction(kSignals[i], &action, nullptr);
  }
  // Ctrl-C also ends the tee that reads the log, and the next line of the log must not end this process before it has saved.
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &g_old_pipe_action);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGPIPE, &g_old_pipe_action, nullptr);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &g_old_actions[i], nullptr);
}

std::optional<int> StopSignals::received() const {
  const int signal = g_received;
  return signal == 0 ? std::nullopt : std::optional(signal);
}

int exit_code_of(int signal) { return 128 + signal; }

std::string name_of_signal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? str("signal ", signal) : str("SIG", name);
}

void check_stop(const StopQuestion& question, const std::string& what) {
  if (!question) return;
  if (const std::optional<int> signal = question())
    throw Interrupted(*signal, str(name_of_signal(*signal), " received while ", what, " was unavailable"));
}

std::chrono::seconds parse_time_limit(std::string_view text, std::string_view where) {
  constexpr std::array<int64_t, 4> kSecondsOf = {86400, 3600, 60, 1};
  int64_t total = 0;
  std::string_view rest = text;
  for (size_t i = 0; i < kSecondsOf.size(); ++i) {
    const size_t colon = i + 1 < kSecondsOf.size() ? rest.find(':') : rest.size();
    int64_t field = 0;
    const bool is_field =
        colon != std::string_view::npos && colon > 0 && rest[0] >= '0' && rest[0] <= '9' && read_integer(rest.substr(0, colon), field);
    check(is_field && field <= 1000000, where, ": expected a time as DD:HH:MM:SS, found \"", text, "\"");
    total += field * kSecondsOf[i];
    if (i + 1 < kSecondsOf.size()) rest.remove_prefix(colon + 1);
  }
  return std::chrono::seconds(total);
}

}  // namespace kedge
