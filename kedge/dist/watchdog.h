#pragma once
// Ends the job when a rank dies or hangs, whatever the main threads are stuck in. Every rank has a thread with TCP connections of its own:
// rank 0 and each other rank send each other a heartbeat every second. If rank 0 hears nothing of a rank for too long, or the connection
// breaks, it tells all ranks; each of them logs which rank it was and ends its process. If rank 0 is the one, the others find out by
// themselves. Independent of MPI's progress and of GPUs.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kedge/dist/heartbeats.h"
#include "kedge/dist/line_socket.h"

namespace kedge {

class Group;

// For the ranks of the job, once, by all of them; nothing in a group of one. KEDGE_WATCHDOG=SECONDS of rank 0 sets how long a rank may be
// silent, 0 switches the watchdog off. A rank that cannot connect is named in a warning and not watched.
void start_watchdog(const Group& world);

// Before the process ends: with 0, the others do not miss this rank; otherwise they log `why` and end too. Does nothing where none was
// started.
void end_watchdog(int exit_code, std::string_view why = "");

// While one lives, rank 0 knows that this rank waits for others in the call.
class WaitingScope {
 public:
  explicit WaitingScope(std::string_view call);
  ~WaitingScope();
  WaitingScope(const WaitingScope&) = delete;
  WaitingScope& operator=(const WaitingScope&) = delete;
};

// The value of KEDGE_WATCHDOG, null where it is not set; none: no watchdog.
[[nodiscard]] std::optional<std::chrono::seconds> read_watchdog_silence(const char* value);

struct WatchdogOptions {
  HeartbeatLimits limits;
  // When another rank ends: time for this one to end too. Where all fail together, or the launcher ends all, none blames another.
  std::chrono::milliseconds courtesy{200};
  // From the report to the end of the process. The first process that ends makes the launcher end the others, which report it too.
  std::chrono::milliseconds grace{3000};
  // Called by the watchdog's thread, one after the other.
  std::function<void(const std::string& why)> report;
  std::function<void(int exit_code)> end;
};

// One rank's part. Names are those of all ranks, for reports. All calls are made by the process's other threads.
class Watchdog {
 public:
  // Rank 0: the others connect with the token.
  Watchdog(std::vector<std::string> names, LineListener listener, std::string token, WatchdogOptions options);
  // Another rank.
  Watchdog(std::vector<std::string> names, LineSocket rank_0, WatchdogOptions options);
  ~Watchdog();  // with a goodbye
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void say_goodbye(int exit_code, std::string_view why);  // and ends the thread; only the first one counts
  void set_call(std::string_view name);                   // empty: in none

 private:
  struct Peer {
    LineSocket socket;
    int rank;  // -1: it has not said yet, or it has left
    std::chrono::steady_clock::time_point since;
    bool has_news = false;
  };
  struct Failure {
    int exit_code;
    std::string text;
    bool has_ended;  // the rank, that is; otherwise it hangs, or all know already
  };

  void run();
  void wait_for_news(std::chrono::milliseconds limit);
  void read_news();
  void tick(std::chrono::milliseconds time);
  void take(Peer& peer, std::string_view line);
  void welcome(Peer& peer, std::string_view words);
  void drop_connections();
  void tell_ranks(const std::string& line);
  void add_failure(Failure failure);
  void end_job();
  void leave();
  [[nodiscard]] bool leaves_within(std::chrono::milliseconds limit) const;
  [[nodiscard]] WaitingCall current_call();

  WatchdogOptions options_;
  Heartbeats heartbeats_;
  int num_ranks_;
  int num_joined_ = 0;
  std::optional<LineListener> listener_;  // rank 0's; closed when all ranks have joined
  std::string token_;
  std::vector<Peer> peers_;
  std::optional<Failure> failure_;

  std::mutex mutex_;
  WaitingCall call_;  // under mutex_
  FileDescriptor wake_;
  std::atomic<bool> is_leaving_ = false;
  std::string goodbye_;  // set before is_leaving_
  std::thread thread_;
};

// Connects a rank with rank 0's watchdog, at the first of the addresses where it answers. Throws an Error if there is none.
[[nodiscard]] LineSocket join_watchdog(const std::vector<std::string>& addresses, int port, std::string_view token, int rank);

}  // namespace kedge
