#pragma once
// How long the named phases of a step take, summed until taken. Devices and ranks are only known through hooks.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/metrics/metrics.h"

namespace kedge {

struct TimersOptions {
  std::function<void()> synchronize{};  // waits for the device; called when a scope begins and ends
  std::function<double()> clock{};      // monotonic seconds; empty: the machine's clock
};

// Not thread-safe. Scopes nest; a scope inside one of the same name is part of it and adds nothing.
class Timers {
 public:
  explicit Timers(TimersOptions options = {});

  // Measures until its end or `stop`, also when an exception ends it. Must not outlive its Timers. `synchronize` may throw out of
  // the destructor, so that a device error is not lost; while another exception is in flight it is not called.
  class [[nodiscard]] Scope {
   public:
    ~Scope() noexcept(false);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void stop();

   private:
    friend class Timers;
    Scope(Timers& timers, size_t index);
    Timers* timers_;  // null when stopped
    size_t index_;
    int num_exceptions_;  // active when the scope began
  };

  // auto scope = timers.measure("generate");
  Scope measure(std::string_view name);

  // The innermost scope that an exception ended, if none began since; else empty.
  [[nodiscard]] const std::string& interrupted() const { return interrupted_; }

  // Replaces each value by its maximum over the ranks; every rank calls it with as many values.
  using MaxOverRanks = std::function<void(std::span<double>)>;

  // The seconds of each name ended since the last take, as "timers/NAME". Scopes that still run go into a later take.
  [[nodiscard]] Metrics take();
  // The same, where each of `names` is the maximum over all ranks. Every rank passes the same list, whatever it measured, so ranks
  // that took different paths still match; a rank without a name counts 0, and a name that was never measured is left out.
  // Names outside the list are this rank's own.
  [[nodiscard]] Metrics take(std::span<const std::string_view> names, const MaxOverRanks& max_over_ranks);

 private:
  struct Phase {
    std::string name;
    double seconds = 0;
    bool measured = false;
    int depth = 0;  // scopes of this name that run now
    double start = 0;
  };
  void interrupt(size_t index);
  void end(size_t index, bool synchronize);

  TimersOptions options_;
  std::vector<Phase> phases_;  // in the order first measured
  std::string interrupted_;
};

}  // namespace kedge
