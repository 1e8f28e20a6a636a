#pragma once
// Which ranks do not answer, and which keep the others waiting, from what is heard of them. Independent of sockets and clocks: time is what
// pass() is given.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kedge {

struct HeartbeatLimits {
  std::chrono::milliseconds period{1000};    // between two heartbeats of a rank
  std::chrono::milliseconds silence{20000};  // after which a rank is taken for hung
  std::chrono::minutes stall{30};            // after which ranks that wait for others name them in a warning
  std::chrono::seconds stall_repeat{60};     // between two such warnings
};

// The collective call that a rank's main thread is in.
struct WaitingCall {
  uint64_t number = 0;  // another one for every call
  std::string name;     // empty: in none
};

// Not thread-safe.
class Heartbeats {
 public:
  // `names` are those of all ranks, for warnings.
  Heartbeats(std::vector<std::string> names, const HeartbeatLimits& limits);

  void watch(int rank);   // from now on
  void forget(int rank);  // it has left
  void heard(int rank, const WaitingCall& call);

  // So much time since the last call, in which everything that arrived was passed to heard(). What exceeds two periods does not count:
  // then this process was stopped or the machine suspended, and the others' heartbeats of that time may still be on their way.
  void pass(std::chrono::milliseconds time);

  [[nodiscard]] const std::string& name(int rank) const { return ranks_.at(static_cast<size_t>(rank)).name; }
  [[nodiscard]] std::vector<int> silent_ranks() const;

  // Once when ranks have waited in a call for longer than the limit while others are in none, then again and again; empty otherwise.
  [[nodiscard]] std::string stall_warning();

 private:
  struct Rank {
    std::string name;
    bool is_watched = false;
    std::chrono::milliseconds silence{0};
    WaitingCall call;
    std::chrono::milliseconds waited{0};  // in `call`
  };

  HeartbeatLimits limits_;
  std::vector<Rank> ranks_;
  std::chrono::milliseconds until_warning_{0};
};

}  // namespace kedge
