// The watchdog of this process: how the ranks of a job connect theirs, and how the rest of the program reaches it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/dist/group.h"
#include "kedge/dist/watchdog.h"

namespace kedge {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kSilence{20};

// Never destroyed: the job may have to end at any time, also while the process ends.
std::atomic<Watchdog*> the_watchdog = nullptr;

// The same for processes that reach each other at 127.0.0.1: this boot of the kernel, and the network that a container may have to itself.
std::string loopback_name() {
  std::array<char, 64> network{};
  const ssize_t length = ::readlink("/proc/self/ns/net", network.data(), network.size() - 1);
  return str(host_name(), " ", boot_id(), " ", length > 0 ? network.data() : "");
}

// From now on the process ends, even if a line cannot be written because somebody else holds a lock or does not read our output.
void report_end(const std::string& why) {
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(8);
  set_status_line("");
  log_error(why, "; the job ends");
}

WatchdogOptions options_for(milliseconds silence) {
  WatchdogOptions options;
  options.limits.silence = silence;
  options.limits.period = std::min(options.limits.period, silence / 5);
  options.report = report_end;
  options.end = end_process;
  return options;
}

// What the other ranks need to connect to rank 0's; empty: there is none.
struct Invitation {
  int64_t silence_ms = 0;
  int port = 0;
  std::string token;
  std::vector<std::string> addresses;

  [[nodiscard]] std::string text() const {
    std::string words = str(silence_ms, " ", port, " ", token);
    for (const std::string& address : addresses) words += str(" ", address);
    return words;
  }
  static Invitation parse(const std::string& text) {
    Invitation found;
    std::istringstream words(text);
    words >> found.silence_ms >> found.port >> found.token;
    for (std::string address; words >> address;) found.addresses.push_back(address);
    return found;
  }
};

// Rank 0's part. A machine on which nothing can listen has no watchdog.
std::string invite(const std::vector<std::string>& names, bool is_one_machine) {
  const std::optional<std::chrono::seconds> silence = read_watchdog_silence(std::getenv("KEDGE_WATCHDOG"));
  if (!silence) return "";
  try {
    LineListener listener(is_one_machine ? LineListener::Reach::machine : LineListener::Reach::network);
    Invitation invitation{milliseconds(*silence).count(), listener.port(), random_hex(16), {"127.0.0.1"}};
    if (!is_one_machine)
      for (const std::string& address : own_addresses()) invitation.addresses.push_back(address);
    the_watchdog = new Watchdog(names, std::move(listener), invitation.token, options_for(*silence));
    return invitation.text();
  } catch (const Error& error) {
    if (dynamic_cast<const UsageError*>(&error) != nullptr) throw;
    log_warn("no watchdog: ranks that hang will not be noticed: ", error.what());
    return "";
  }
}

// Another rank's part: what went wrong, if anything.
std::string join(const Invitation& invitation, const std::vector<std::string>& names, int rank, bool is_with_rank_0) {
  std::vector<std::string> addresses = invitation.addresses;
  if (!is_with_rank_0) addresses.erase(addresses.begin());  // 127.0.0.1
  try {
    LineSocket rank_0 = join_watchdog(addresses, invitation.port, invitation.token, rank);
    the_watchdog = new Watchdog(names, std::move(rank_0), options_for(milliseconds(invitation.silence_ms)));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::optional<std::chrono::seconds> read_watchdog_silence(const char* value) {
  const std::string_view text = value == nullptr ? "" : value;
  if (text.empty()) return kSilence;
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  check(error == std::errc() && end == text.data() + text.size() && seconds >= 0 && seconds <= 1000000,
        "KEDGE_WATCHDOG: expected seconds, or 0 for no watchdog, found \"", text, "\"");
  return seconds == 0 ? std::nullopt : std::optional(std::chrono::seconds(seconds));
}

void start_watchdog(const Group& world) {
  if (world.size() == 1) return;
  std::vector<std::string> names;
  const std::string host = host_name();
  for (const std::string& who : world.all_gather(str("pid ", ::getpid(), " on ", host)))
    names.push_back(str("rank ", names.size(), " (", who, ")"));
  const std::vector<std::string> machines = world.all_gather(loopback_name());
  bool is_one_machine = true;
  for (const std::string& machine : machines) is_one_machine = is_one_machine && machine == machines[0];

  std::string invitation = world.rank() == 0 ? invite(names, is_one_machine) : "";
  world.broadcast(invitation, 0);
  if (invitation.empty()) return;
  const bool is_with_rank_0 = machines[static_cast<size_t>(world.rank())] == machines[0];
  const std::string problem = world.rank() == 0 ? "" : join(Invitation::parse(invitation), names, world.rank(), is_with_rank_0);
  const std::vector<std::string> problems = world.all_gather(problem);
  if (world.rank() != 0) return;
  for (size_t rank = 0; rank < problems.size(); ++rank)
    if (!problems[rank].empty())
      log_warn(names[rank], " cannot reach rank 0's watchdog, so the others will not notice when it hangs: ", problems[rank]);
}

void end_watchdog(int exit_code, std::string_view why) {
  if (Watchdog* const watchdog = the_watchdog) watchdog->say_goodbye(exit_code, why);
}

WaitingScope::WaitingScope(std::string_view call) {
  if (Watchdog* const watchdog = the_watchdog) watchdog->set_call(call);
}

WaitingScope::~WaitingScope() {
  if (Watchdog* const watchdog = the_watchdog) watchdog->set_call("");
}

}  // namespace kedge
